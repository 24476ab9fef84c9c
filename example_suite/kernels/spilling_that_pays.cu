// A spill that pays: values that are not needed for long make room for warps that are.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (limited local memory usage
// can be beneficial).
//
// Every thread reads 96 coefficients and evaluates two polynomials with them: one before and one after a walk through
// a table, where each hop reads where the next one goes.  The first polynomial needs the coefficients before the walk,
// the second after it; during the walk, which takes most of the time, nobody touches them.  But they fill the
// registers, and so only 16 warps fit an SM to hide the latency of the hops.
//
//   walk          what the compiler likes.  With -maxrregcount=64 sixty values wait in local memory, and twice as many
//                 warps walk.  With 32, four times as many do, but what they put away exceeds the L1.
//   walk_shared   half of the coefficients wait in shared memory instead, by the programmer's hand: as many warps as
//                 under the cap of 64, and no local memory.
//
// The spill pays because three things come together: latency is the limit, the walk is long against the traffic of the
// spill, and what is spilled stays out of the loop.  Take one away, and it does not: with no hops to wait for, or with
// lanes that walk to places of their own, so that the memory is busy already, the cap brings nothing.
//
// In the machine code: STL before the loop, LDL after it and none within: that is the loop of one LDG whose address is
// what the last one brought.
//
// `next` has one entry per place.  Where a warp's threads start at the same place they walk together, and a hop is one
// sector.  `in` has the coefficients of a block together, those of all its threads side by side.

constexpr int kCoefficients = 96;
constexpr int kInShared = 48;
constexpr int kBlock = 128;

__device__ __forceinline__ long long first_coefficient()
{
    return static_cast<long long>(blockIdx.x) * (kCoefficients * kBlock) + threadIdx.x;
}

__device__ __forceinline__ int walked(const int* next, int place, int hops)
{
#pragma unroll 1
    for (int hop = 0; hop < hops; ++hop) place = next[place];
    return place;
}

// The first polynomial decides whether the walk begins one place further on.
__device__ __forceinline__ int entered(float value, int place, int places)
{
    return value > 1e30f ? (place + 1) % places : place;
}

extern "C" __global__ void walk(
    const float* in, const int* next, const int* start, float* out, int places, int hops)
{
    const int i = blockIdx.x * kBlock + threadIdx.x;
    const float* from = in + first_coefficient();
    float values[kCoefficients];
    float before = 0.0f;
#pragma unroll
    for (int k = 0; k < kCoefficients; ++k) values[k] = from[k * kBlock];
#pragma unroll
    for (int k = 0; k < kCoefficients; ++k) before = fmaf(before, 0.5f, values[k]);
    const int place = walked(next, entered(before, start[i], places), hops);
    const float x = static_cast<float>(place) / static_cast<float>(places);
    float after = before;
#pragma unroll
    for (int k = kCoefficients - 1; k >= 0; --k) after = fmaf(after, x, values[k]);
    out[i] = after;
}

extern "C" __global__ void __launch_bounds__(kBlock, 8) walk_shared(
    const float* in, const int* next, const int* start, float* out, int places, int hops)
{
    __shared__ float shelf[kInShared][kBlock];  // a column per thread: no conflicts, and no barrier either
    const int i = blockIdx.x * kBlock + threadIdx.x;
    const float* from = in + first_coefficient();
    constexpr int kept = kCoefficients - kInShared;
    float values[kept];
    float before = 0.0f;
#pragma unroll 8
    for (int k = 0; k < kInShared; ++k) {
        const float value = from[k * kBlock];
        before = fmaf(before, 0.5f, value);
        shelf[k][threadIdx.x] = value;
    }
#pragma unroll
    for (int k = 0; k < kept; ++k) values[k] = from[(kInShared + k) * kBlock];
#pragma unroll
    for (int k = 0; k < kept; ++k) before = fmaf(before, 0.5f, values[k]);
    const int place = walked(next, entered(before, start[i], places), hops);
    const float x = static_cast<float>(place) / static_cast<float>(places);
    float after = before;
#pragma unroll
    for (int k = kept - 1; k >= 0; --k) after = fmaf(after, x, values[k]);
#pragma unroll 8
    for (int k = kInShared - 1; k >= 0; --k) after = fmaf(after, x, shelf[k][threadIdx.x]);
    out[i] = after;
}
