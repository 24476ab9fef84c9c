// Choosing a value by control flow or by arithmetic.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (conceptual divergence via
// dataflow).
//
//     x = is_a ? a : is_b ? b : 0        or        x = is_a * a + is_b * b
//
// The two agree if no element has both flags and the values are finite (0 times infinity is not zero; and two negative
// values with no flag give -0).
//
//   branch, predicate_math   flags and values in memory.  The branch must not read a value that was not chosen, so it
//                            loads a flag, waits, loads the other flag or a value, waits: a warp goes through all
//                            sides, one memory latency after the other.  The arithmetic loads all four at once.
//   branch_in_registers,     values in registers, flags from a random number, many rounds.  Nothing forbids to evaluate
//   math_in_registers        both sides here, so the compiler itself turns the branch into selections; the arithmetic
//                            only adds conversions of the flags to float.
//
// In the machine code: `branch` has BRA around its loads, `predicate_math` has none.  In registers neither has a branch
// but the loop's: FSEL in one, I2F and FMUL in the other.  So: help the compiler where it may not help itself.

constexpr int kRounds = 256;

__device__ __forceinline__ int own_element()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void branch(const unsigned char* is_a, const unsigned char* is_b, const float* a, const float* b,
                                  float* out, int n)
{
    const int i = own_element();
    if (i >= n) return;
    float x = 0.0f;
    if (is_a[i]) {
        x = a[i];
    } else if (is_b[i]) {
        x = b[i];
    }
    out[i] = x;
}

extern "C" __global__ void predicate_math(const unsigned char* is_a, const unsigned char* is_b, const float* a,
                                          const float* b, float* out, int n)
{
    const int i = own_element();
    if (i >= n) return;
    out[i] = is_a[i] * a[i] + is_b[i] * b[i];
}

// One of two flags, or none, from the upper bits of a linear congruential generator.
struct Flags {
    bool is_a, is_b;

    __device__ __forceinline__ explicit Flags(unsigned& state)
    {
        state = state * 1664525u + 1013904223u;
        is_a = state >> 31;
        is_b = !is_a && (state >> 30 & 1u);
    }
};

extern "C" __global__ void branch_in_registers(const unsigned* seeds, const float* a, const float* b, float* out, int n)
{
    const int i = own_element();
    if (i >= n) return;
    unsigned state = seeds[i];
    const float own_a = a[i];
    const float own_b = b[i];
    float sum = 0.0f;
    for (int round = 0; round < kRounds; ++round) {
        const Flags flags(state);
        float x = 0.0f;
        if (flags.is_a) {
            x = own_a;
        } else if (flags.is_b) {
            x = own_b;
        }
        sum = sum * 0.5f + x;
    }
    out[i] = sum;
}

extern "C" __global__ void math_in_registers(const unsigned* seeds, const float* a, const float* b, float* out, int n)
{
    const int i = own_element();
    if (i >= n) return;
    unsigned state = seeds[i];
    const float own_a = a[i];
    const float own_b = b[i];
    float sum = 0.0f;
    for (int round = 0; round < kRounds; ++round) {
        const Flags flags(state);
        sum = sum * 0.5f + (flags.is_a * own_a + flags.is_b * own_b);
    }
    out[i] = sum;
}
