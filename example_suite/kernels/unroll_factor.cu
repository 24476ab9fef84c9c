// How often a loop is unrolled: from no unrolling to a loop that fits into no instruction cache of an SM.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (tip on unroll factors).
//
// A thread repeats one step `rounds` x Factor times.  The step is a single multiply-add, so the counter, the comparison
// and the branch are most of a loop that is not unrolled.
//
//   repeat<MultiplyAdd, 1>         counter, comparison and branch for every multiply-add
//   repeat<MultiplyAdd, 2 ... 256> these three once in 2 ... 256 multiply-adds: soon there is nothing left to gain
//   repeat<MultiplyAdd, 4096>      64 KB of machine code: more than the caches next to the schedulers hold
//   repeat<MultiplyAdd, 16384>     256 KB: more than any instruction cache of an SM holds, fetched from the L2 again
//                                  and again
//                                  On an H200 both take no longer than 256: warps that walk in step share what is
//                                  fetched, and it comes in the order of its use.
//   repeat<RootOf, ...>            the control: the step is limited by the special-function unit, which starts a warp
//                                  only every 8 cycles; the loop's own instructions fit into the gaps and cost nothing.
//
// In the machine code: an instruction is 16 bytes.  The steps are all FFMA (and MUFU.RSQ for the control); their number
// grows with the factor, that of branches does not.  Nothing spills, the registers stay few: what changes is the size.

struct MultiplyAdd {
    static __device__ float of(float x, float a, float b)
    {
        return fmaf(x, a, b);
    }
};

struct RootOf {
    static __device__ float of(float x, float a, float b)
    {
        float y;
        // rsqrtf() would add instructions for denormal numbers.
        asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(fmaf(x, a, b)));
        return y;
    }
};

// Two nested loops, because compilers stop at some number of iterations of one.
template <typename Step, int Factor>
__global__ void repeat(const float* x, const float* a, const float* b, float* out, int n, int rounds)
{
    constexpr int kInner = Factor < 256 ? Factor : 256;
    static_assert(Factor % kInner == 0);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    const float factor = a[i];
    const float summand = b[i];
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int outer = 0; outer < Factor / kInner; ++outer) {
#pragma unroll
            for (int inner = 0; inner < kInner; ++inner) value = Step::of(value, factor, summand);
        }
    }
    out[i] = value;
}
