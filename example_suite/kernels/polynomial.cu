// Six ways to evaluate a polynomial: doing less arithmetic, then doing it side by side.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (polynomial evaluation).
//
//   y = 1.00 + 1.01 x + 1.02 x^2 + ... + 1.64 x^64
//
//   pow_double      a call of pow() per term, with double literals: everything runs in FP64.
//   pow_float       the same with float literals and powf(): one `f` per literal is worth several times the speed.
//   running_power   x^k = x * x^(k-1): two multiplications and an addition per term instead of a call.
//   horner          ((a64 x + a63) x + a62) x + ...: one multiplication and one addition per term.
//   horner_fma      both in one instruction.  Its weakness: a chain of 64, each waiting for the one before.
//   estrin_fma      one step of Estrin's scheme: even and odd powers are two polynomials in x^2, evaluated by Horner's
//                   rule side by side.  One multiplication more, half the waiting.
//
// In the machine code: count FMUL, FADD and FFMA (FP64: DMUL, DADD, DFMA).  Compile with --fmad=false: otherwise the
// compiler fuses Horner's multiplication and addition by itself, and horner and horner_fma are the same code.
//
// Each thread takes elements in a grid-stride loop and adds up 32 evaluations per element, at x, x * r, x * r^2, ...
// with r = 31/32: x stays in range, and no two evaluations are alike.

constexpr int kDegree = 64;
constexpr int kEvaluations = 32;
constexpr float kShrink = 0.96875f;

// The literals 1.00, 1.01, ...; without the cast, the arithmetic around them would be done in double.
template <typename T>
__device__ constexpr T coefficient(int k)
{
    return static_cast<T>(1.0 + 0.01 * k);
}

struct PowDouble {
    // Spelled out, because pow(float, int) is a float function in some headers and a double one in others.
    static __device__ __forceinline__ float evaluate(float x)
    {
        float value = coefficient<float>(0);
#pragma unroll
        for (int k = 1; k <= kDegree; ++k) {
            value += pow(static_cast<double>(x), static_cast<double>(k)) * coefficient<double>(k);
        }
        return value;
    }
};

struct PowFloat {
    static __device__ __forceinline__ float evaluate(float x)
    {
        float value = coefficient<float>(0);
#pragma unroll
        for (int k = 1; k <= kDegree; ++k) value += powf(x, static_cast<float>(k)) * coefficient<float>(k);
        return value;
    }
};

struct RunningPower {
    static __device__ __forceinline__ float evaluate(float x)
    {
        float value = coefficient<float>(0);
        float power = 1.0f;
#pragma unroll
        for (int k = 1; k <= kDegree; ++k) {
            power *= x;
            value += power * coefficient<float>(k);
        }
        return value;
    }
};

struct Horner {
    template <typename T>
    static __device__ __forceinline__ T evaluate(T x)
    {
        T value = coefficient<T>(kDegree);
#pragma unroll
        for (int k = kDegree - 1; k >= 0; --k) value = value * x + coefficient<T>(k);
        return value;
    }
};

struct HornerFma {
    static __device__ __forceinline__ float evaluate(float x)
    {
        float value = coefficient<float>(kDegree);
#pragma unroll
        for (int k = kDegree - 1; k >= 0; --k) value = __fmaf_rn(value, x, coefficient<float>(k));
        return value;
    }
};

struct EstrinFma {
    static __device__ __forceinline__ float evaluate(float x)
    {
        const float square = x * x;
        float even = coefficient<float>(kDegree);
        float odd = coefficient<float>(kDegree - 1);
#pragma unroll
        for (int k = kDegree - 2; k > 0; k -= 2) {
            even = __fmaf_rn(even, square, coefficient<float>(k));
            odd = __fmaf_rn(odd, square, coefficient<float>(k - 1));
        }
        even = __fmaf_rn(even, square, coefficient<float>(0));
        return __fmaf_rn(odd, x, even);
    }
};

template <typename Scheme, typename T>
__device__ __forceinline__ void sum_evaluations(const T* in, T* out, long long n)
{
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long i = first; i < n; i += stride) {
        T x = in[i];
        T sum = 0;
#pragma unroll 1
        for (int evaluation = 0; evaluation < kEvaluations; ++evaluation) {
            sum += Scheme::evaluate(x);
            x *= static_cast<T>(kShrink);
        }
        out[i] = sum;
    }
}

extern "C" __global__ void pow_double(const float* in, float* out, long long n)
{
    sum_evaluations<PowDouble>(in, out, n);
}

extern "C" __global__ void pow_float(const float* in, float* out, long long n)
{
    sum_evaluations<PowFloat>(in, out, n);
}

extern "C" __global__ void running_power(const float* in, float* out, long long n)
{
    sum_evaluations<RunningPower>(in, out, n);
}

extern "C" __global__ void horner(const float* in, float* out, long long n)
{
    sum_evaluations<Horner>(in, out, n);
}

extern "C" __global__ void horner_fma(const float* in, float* out, long long n)
{
    sum_evaluations<HornerFma>(in, out, n);
}

extern "C" __global__ void estrin_fma(const float* in, float* out, long long n)
{
    sum_evaluations<EstrinFma>(in, out, n);
}
