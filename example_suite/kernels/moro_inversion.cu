// Inverting the normal distribution: calls, branches and slow divisions inside one small function.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (register pressure).
//
// A random 32-bit number becomes a normally distributed one by Moro's approximation (B. Moro, "The Full Monte", Risk,
// 1995): a quotient of two polynomials in the middle of the distribution, a polynomial in log(-log(p)) in its tails.
//
//   Inlined     the function's code is part of the loop.
//   Called      the same, kept apart by __noinline__: arguments and results pass through fixed registers, and nothing
//               is scheduled across the call.
//   FastLog     with __logf, the special-function unit's logarithm.
//   BothSides   computes the middle and the tail for every number and selects: no branch, and no warp that takes both
//               sides one after the other; but the work of both for everyone.
//
// 16 % of random numbers are in the tails, so that 99.6 % of the warps hold some of each.  Sorted numbers take one side
// per warp.
//
// In the machine code: CALL in Called; in the others CALL remains for the division, whose slow path (guarded by FCHK)
// is a function.  With --use_fast_math it is gone.

struct Accurate {
    static __device__ __forceinline__ float log(float x) { return logf(x); }
};
struct Fast {
    static __device__ __forceinline__ float log(float x) { return __logf(x); }
};

// Both are for p up to 1/2, less 1/2; both results are below 0.
__device__ __forceinline__ float in_the_middle(float below_half)
{
    const float z = below_half * below_half;
    const float above =
        ((-25.44106049637f * z + 41.39119773534f) * z + -18.61500062529f) * z + 2.50662823884f;
    const float below =
        (((3.13082909833f * z + -21.06224101826f) * z + 23.08336743743f) * z + -8.4735109309f) * z + 1.0f;
    return below_half * above / below;
}

template <typename Log>
__device__ __forceinline__ float in_the_tail(float p)
{
    const float z = Log::log(-Log::log(p));
    float sum = 0.0000003960315187f;
    sum = sum * z + 0.0000002888167364f;
    sum = sum * z + 0.0000321767881768f;
    sum = sum * z + 0.0003951896511919f;
    sum = sum * z + 0.0038405729373609f;
    sum = sum * z + 0.0276438810333863f;
    sum = sum * z + 0.1607979714918209f;
    sum = sum * z + 0.9761690190917186f;
    return -(sum * z + 0.3374754822726147f);
}

constexpr float kUnit = 1.0f / 4294967295.0f;
constexpr float kEdgeOfTheMiddle = -0.42f;

// The probability of the number's half of the distribution: in (0, 1/2].
__device__ __forceinline__ float probability(unsigned number, bool& upper)
{
    upper = number >= 0x80000000u;
    if (upper) number = 0xffffffffu - number;
    return number * kUnit + kUnit / 2;
}

template <typename Log>
__device__ __forceinline__ float quantile(unsigned number)
{
    bool upper;
    const float p = probability(number, upper);
    const float below_half = p - 0.5f;
    const float z = below_half > kEdgeOfTheMiddle ? in_the_middle(below_half) : in_the_tail<Log>(p);
    return upper ? -z : z;
}

struct Inlined {
    static __device__ __forceinline__ float of(unsigned number) { return quantile<Accurate>(number); }
};
struct Called {
    static __device__ __noinline__ float of(unsigned number) { return quantile<Accurate>(number); }
};
struct FastLog {
    static __device__ __forceinline__ float of(unsigned number) { return quantile<Fast>(number); }
};
struct BothSides {
    static __device__ __forceinline__ float of(unsigned number)
    {
        bool upper;
        const float p = probability(number, upper);
        const float below_half = p - 0.5f;
        const float middle = in_the_middle(below_half);
        const float tail = in_the_tail<Accurate>(p);
        const float z = below_half > kEdgeOfTheMiddle ? middle : tail;
        return upper ? -z : z;
    }
};

// Adds up the quantiles of `rounds` numbers that differ from the given one in the lower bits, and so are on its side.
template <typename Quantile>
__global__ void sum_quantiles(const unsigned* in, float* out, int n, int rounds)
{
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const unsigned number = in[i];
        float sum = 0.0f;
#pragma unroll 1
        for (int round = 0; round < rounds; ++round) sum += Quantile::of(number ^ round << 8);
        out[i] = sum;
    }
}
