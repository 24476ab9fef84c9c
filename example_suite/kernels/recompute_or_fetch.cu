// Compute it again, or fetch it from a table?
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", which asks this among the
// ways to avoid a stall ("Fetch vs recompute?").
//
//   out[i] = x[i] * w(x[i])        w is a polynomial of as many steps of Horner's rule as the test says
//
//   recompute<Steps>    evaluates w: 8 bytes per element move, and Steps multiply-adds run meanwhile.
//   fetch               reads w from a table that was computed before: 12 bytes per element, hardly any arithmetic.
//
// As long as the multiply-adds fit behind the 8 bytes they are free, and the table costs half as much again.  An SM of
// an H200 does 128 of them in a cycle, and its share of the memory is some 17 bytes: 8 bytes last as long as 60
// multiply-adds, 12 as long as 90.  There it would turn round if both ran at their peaks; on an H200 it does at 65.
//
// In the machine code: LDG.E.128 once or twice, and as many FFMA as there are steps in a loop of 16 (times the four
// elements of a thread), or none.

constexpr int kUnrolled = 16;

template <int Steps>
__device__ __forceinline__ float weight(float x, float coefficient)
{
    static_assert(Steps % kUnrolled == 0, "whole turns of the loop");
    float value = coefficient;
#pragma unroll 1
    for (int turn = 0; turn < Steps / kUnrolled; ++turn) {
#pragma unroll
        for (int k = 0; k < kUnrolled; ++k) value = __fmaf_rn(value, x, coefficient);
    }
    return value;
}

__device__ __forceinline__ long long global_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// What fills the table; one element per thread.
template <int Steps>
__global__ void tabulate(float* table, const float* x, float coefficient, long long n)
{
    const long long i = global_index();
    if (i < n) table[i] = weight<Steps>(x[i], coefficient);
}

// A thread takes four neighbours; the four chains hide each other's latency.  `quads` is a quarter of the elements.
template <int Steps>
__global__ void recompute(float4* out, const float4* x, float coefficient, long long quads)
{
    const long long i = global_index();
    if (i >= quads) return;
    const float4 own = x[i];
    float4 value{coefficient, coefficient, coefficient, coefficient};
#pragma unroll 1
    for (int turn = 0; turn < Steps / kUnrolled; ++turn) {
#pragma unroll
        for (int k = 0; k < kUnrolled; ++k) {
            value.x = __fmaf_rn(value.x, own.x, coefficient);
            value.y = __fmaf_rn(value.y, own.y, coefficient);
            value.z = __fmaf_rn(value.z, own.z, coefficient);
            value.w = __fmaf_rn(value.w, own.w, coefficient);
        }
    }
    out[i] = float4{own.x * value.x, own.y * value.y, own.z * value.z, own.w * value.w};
}

extern "C" __global__ void fetch(float4* out, const float4* x, const float4* table, long long quads)
{
    const long long i = global_index();
    if (i >= quads) return;
    const float4 own = x[i];
    const float4 value = table[i];
    out[i] = float4{own.x * value.x, own.y * value.y, own.z * value.z, own.w * value.w};
}
