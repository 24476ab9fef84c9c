// Functions in hardware against functions in software: precision is paid for in instructions.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (use only the precision your
// application needs).
//
//   expf(x)     correct to 1 ulp: splits x into a whole and a fractional power of two with half a dozen instructions.
//   __expf(x)   one multiplication by log2(e) and the special-function unit's ex2; its error grows with |x|.
//   --use_fast_math turns every expf into __expf, and so for sinf, cosf, divisions and square roots: all or nothing.
//
// Likewise sinf and __sinf, cosf and __cosf.
//
// In the machine code: count what surrounds MUFU, the special-function unit's instruction.  It takes 8 cycles of a
// scheduler's time, in which the extra arithmetic of expf can be issued: with enough warps, expf is almost free.  A
// lone warp waits for every instruction of the longer chain.

struct Expf {
    static __device__ __forceinline__ float of(float x) { return expf(x); }
};
struct FastExpf {
    static __device__ __forceinline__ float of(float x) { return __expf(x); }
};
struct FastSinf {
    static __device__ __forceinline__ float of(float x) { return __sinf(x); }
};
struct FastCosf {
    static __device__ __forceinline__ float of(float x) { return __cosf(x); }
};

__device__ __forceinline__ int global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

template <typename Function>
__global__ void apply(const float* in, float* out, int n)
{
    const int i = global_index();
    if (i < n) out[i] = Function::of(in[i]);
}

constexpr int kChain = 512;

// 512 functions, each of the result of the one before: x -> start - f(x) / 2.
template <typename Function>
__global__ void chain(const float* in, float* out, int n)
{
    const int i = global_index();
    if (i >= n) return;
    const float start = in[i];
    float x = start;
#pragma unroll 16
    for (int link = 0; link < kChain; ++link) x = start - 0.5f * Function::of(x);
    out[i] = x;
}
