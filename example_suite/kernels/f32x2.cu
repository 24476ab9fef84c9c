// Two multiply-adds in one instruction.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", which names f32x2 on
// Blackwell among the vectorised instructions that reduce the instruction count.
//
//   y[i] = ((x[i] * a + b) * a + b) * ...     64 steps, for the two elements of a float2
//
//   steps_one_by_one     fmaf on either half.
//   steps_of_two         fma.rn.f32x2 on both: from sm_100 on.  Before, the PTX has no such instruction, and the same
//                        source becomes the two fmaf.
//
// No flop is saved, and no pipe is wider: half as many instructions are issued.  It pays where issuing is the limit.
//
// In the machine code: 128 FFMA, or 64 FFMA2 on sm_100 and sm_103.  sm_120 is Blackwell, too, and takes the same PTX:
// its machine code has the 128 FFMA again.  The compiler makes no FFMA2 by itself.

constexpr int kSteps = 64;

struct OneByOne {
    static __device__ __forceinline__ float2 fma(float2 x, float2 a, float2 b)
    {
        return float2{fmaf(x.x, a.x, b.x), fmaf(x.y, a.y, b.y)};
    }
};

struct OfTwo {
    static __device__ __forceinline__ float2 fma(float2 x, float2 a, float2 b)
    {
#if __CUDA_ARCH__ >= 1000
        float2 result;
        asm("{\n\t"
            ".reg .b64 x, a, b, y;\n\t"
            "mov.b64 x, {%2, %3};\n\t"
            "mov.b64 a, {%4, %5};\n\t"
            "mov.b64 b, {%6, %7};\n\t"
            "fma.rn.f32x2 y, x, a, b;\n\t"
            "mov.b64 {%0, %1}, y;\n\t"
            "}"
            : "=f"(result.x), "=f"(result.y)
            : "f"(x.x), "f"(x.y), "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));
        return result;
#else
        return OneByOne::fma(x, a, b);
#endif
    }
};

template <typename Arithmetic>
__device__ __forceinline__ void take_steps(float2* y, const float2* x, float a, float b, int pairs)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const float2 factor{a, a};
    const float2 addend{b, b};
    float2 value = x[i];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) value = Arithmetic::fma(value, factor, addend);
    y[i] = value;
}

extern "C" __global__ void steps_one_by_one(float2* y, const float2* x, float a, float b, int pairs)
{
    take_steps<OneByOne>(y, x, a, b, pairs);
}

extern "C" __global__ void steps_of_two(float2* y, const float2* x, float a, float b, int pairs)
{
    take_steps<OfTwo>(y, x, a, b, pairs);
}
