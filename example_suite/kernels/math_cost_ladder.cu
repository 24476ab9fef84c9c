// What arithmetic costs, and how to have it cheaper.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (cost hierarchy, algebraic
// optimizations) and R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (basic compute
// mistakes).
//
// Every kernel repeats one operation on a value in a register, each time on the result of the time before; many warps
// hide its latency, so that the time is that of its instructions.
//
//   Add, Multiply, Fma   one instruction each.  An FMA with literals (FloatLiteral) costs what an addition costs: two
//                        operations for the price of one.  Fma reads three registers, and Hopper issues it half as
//                        often.
//   MultiplyThenAdd      the same apart, as with --fmad=false: two instructions, and another rounding.
//   Divide               a reciprocal of the special-function unit, corrected to the last bit, with a slow path
//                        besides. Where the divisor is the same for all, multiply by its inverse: that is Multiply,
//                        whose p is the inverse of Divide's q.
//   Root, Sine           corrected likewise; and a sine has to bring its argument into range first.
//   Quotient, Product    a / b < c, or the same as a < c * b where b is above 0.
//   DoubleLiteral        x * 0.999 + 0.001 is calculated in double, for want of two letters.
//
// Integers: a remainder by a number unknown to the compiler goes through a floating-point reciprocal; by a constant, it
// is a multiplication.
//
// repeat_index calculates places in an array: IMAD, which the pipe of the floating-point FMA executes.
//
// In the machine code: count the instructions per repetition.  Rolled up, a loop of one FMA spends most of its time on
// its counter (add, compare, branch).

struct Add {
    static __device__ __forceinline__ float of(float x, float p, float) { return x + p; }
};
struct Multiply {
    static __device__ __forceinline__ float of(float x, float p, float) { return x * p; }
};
struct Fma {
    static __device__ __forceinline__ float of(float x, float p, float q) { return __fmaf_rn(x, p, q); }
};
struct MultiplyThenAdd {
    static __device__ __forceinline__ float of(float x, float p, float q) { return __fadd_rn(__fmul_rn(x, p), q); }
};
struct Divide {
    static __device__ __forceinline__ float of(float x, float, float q) { return x / q; }
};
struct Root {
    static __device__ __forceinline__ float of(float x, float, float) { return sqrtf(x); }
};
struct Sine {
    static __device__ __forceinline__ float of(float x, float, float) { return sinf(x); }
};
struct DoubleLiteral {
    static __device__ __forceinline__ float of(float x, float, float) { return x * 0.999 + 0.001; }
};
struct FloatLiteral {
    static __device__ __forceinline__ float of(float x, float, float) { return x * 0.999f + 0.001f; }
};

// Steps up as long as x is less than a share q of x + p.
constexpr float kStep = 0.0009765625f;

struct Quotient {
    static __device__ __forceinline__ float of(float x, float p, float q)
    {
        return x / (x + p) < q ? x + kStep : x - kStep;
    }
};
struct Product {
    static __device__ __forceinline__ float of(float x, float p, float q)
    {
        return x < q * (x + p) ? x + kStep : x - kStep;
    }
};

template <typename Operation, int Unrolled>
__global__ void repeat(const float* in, float* out, float p, float q, int rounds, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
#pragma unroll Unrolled
    for (int round = 0; round < rounds; ++round) x = Operation::of(x, p, q);
    out[i] = x;
}

struct Remainder {
    static __device__ __forceinline__ unsigned of(unsigned x, unsigned m) { return x % m; }
};
struct RemainderBy7 {
    static __device__ __forceinline__ unsigned of(unsigned x, unsigned) { return x % 7; }
};

// 0x9e3779b1 is the prime next to 2^32 divided by the golden ratio, of multiplicative hashing (D. Knuth, "The Art of
// Computer Programming", vol. 3, section 6.4).
//
// The divisor grows by `growth`, which is 0; but if the compiler knew, it would take the divisor's reciprocal only
// once.
template <typename Operation, int Unrolled>
__global__ void repeat_remainder(const unsigned* in, unsigned* out, unsigned m, unsigned growth, int rounds, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = in[i];
#pragma unroll Unrolled
    for (int round = 0; round < rounds; ++round) {
        x = Operation::of(x, m) * 0x9e3779b1u + 12345;
        m += growth;
    }
    out[i] = x;
}

// The place of an element in an array of five dimensions.
__device__ __forceinline__ unsigned place_of(unsigned a, unsigned b, unsigned c, unsigned size)
{
    return (((a * size + b) * size + c) * size + b) * size + c;
}

// Places in two arrays, each the first index into the other: integers alone, in a loop that is not unrolled and whose
// counter is each thread's own.
template <int Unrolled>
__global__ void repeat_index(const unsigned* in, unsigned* out, unsigned size, int rounds, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned place = in[i];
    const unsigned first = place;
#pragma unroll Unrolled
    for (unsigned k = first; k != first + rounds; ++k) {
        place = place_of(place_of(place, k, first, size), first, k, size);
    }
    out[i] = place;
}
