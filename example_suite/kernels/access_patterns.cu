// What a load moves, and what of it is used.
// From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (memory transactions).
//
// Memory comes in sectors of 32 bytes, four to a line.  A warp asks for 32 floats at once, 128 useful bytes, and gets
// every sector that they touch:
//
//   aligned    32 floats in a row, from the start of a line: 4 sectors, all used.  100 %.
//   unaligned  the same 16 bytes further: 5 sectors in two lines.  80 %.
//   worst      32 bytes apart: a sector for each float.  32 sectors, 12.5 %.
//
// Each warp's loads have lines of their own, `pitch` floats apart.  Otherwise the fifth sector of the unaligned pattern
// would be the first of the next load, and the cache would hide what it costs; as it does for a whole array that is
// merely shifted.
//
// sum_whole_sectors is the control: 32 bytes apart again, but the loads that follow take the other words of the same
// sectors, and the L1 has kept them.  The requests are as bad as before; what is moved is all used.
//
// In the machine code: 32 LDG in a row, nothing else worth a look.  The pattern is in the addresses.

constexpr int kWarp = 32;
constexpr int kLoads = 32;  // of a thread, independent of each other: more than enough bytes in flight

// Lane l of load k reads in[k * pitch + shift + l * stride] of its warp's own part; out[thread] is the sum.
template <int Stride, int Shift, int Pitch>
__global__ void sum_loads(float* out, const float* in)
{
    static_assert(Shift + (kWarp - 1) * Stride < Pitch, "loads share no line");
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    const float* own = in + thread / kWarp * (kLoads * Pitch) + Shift + lane * Stride;
    float values[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) values[k] = __ldcg(own + k * Pitch);  // past the L1, which has none of it
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) sum += values[k];
    out[thread] = sum;
}

// Lane l of load k reads word k % 8 of sector l of the warp's part k / 8; for 32 loads, four parts of 1 KB.
extern "C" __global__ void sum_whole_sectors(float* out, const float* in)
{
    constexpr int kWords = 8;  // of a sector
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    const float* own = in + thread / kWarp * (kLoads * kWarp) + lane * kWords;
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < kLoads / kWords; ++part) {
        const float* sector = own + part * kWords * kWarp;
#pragma unroll
        for (int word = 0; word < kWords; ++word) sum += sector[word];
    }
    out[thread] = sum;
}
