// Independent instructions of different pipes take less time together than one kind after the other.
// From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (compute bound kernels:
// hide instructions behind others that use different pipelines).
//
// A scheduler issues one instruction per cycle to a pipe of its choice, and a pipe that is narrower than a warp is busy
// with it for several: on Hopper 2 cycles in FP64 and in the integer ALU, 8 in the special function unit.  One round is
//
//   6 DFMA       a chain in double precision          12 cycles
//   6 SHF        a word that is turned round          12 cycles
//   2 MUFU.EX2   x becomes 2 to the power of -x       16 cycles
//
// and that is 40 cycles one after the other, but 14 instructions to issue.  (An H200 takes 1.4
// times as long for the three together as for the slowest alone: results are waited for as well.)
//
//   in_turn        all rounds of the first kind, then of the second, then of the third: one pipe works, two wait.
//   together       the three in every round.  No instruction less, and no faster one.
//   only_wide      one kind alone; only_turned and only_power are the others.
//   only_turned_twice      the control: two chains of one kind.  Independent as they are, they share a pipe and take
//                          twice the time.
//
// In the machine code: the same counts of DFMA, SHF and MUFU in in_turn and together, in three loops and in one.

constexpr int kWide = 6;    // DFMA of a round
constexpr int kTurns = 6;   // SHF
constexpr int kPowers = 2;  // MUFU

struct Chains {
    double wide;
    unsigned turned;
    float power;
};

__device__ __forceinline__ void step_wide(double& value, double factor, double addend)
{
#pragma unroll
    for (int k = 0; k < kWide; ++k) value = fma(value, factor, addend);
}

__device__ __forceinline__ void step_turned(unsigned& value, unsigned by)
{
#pragma unroll
    for (int k = 0; k < kTurns; ++k) value = __funnelshift_l(value, value, by);
}

__device__ __forceinline__ void step_power(float& value)
{
#pragma unroll
    for (int k = 0; k < kPowers; ++k) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(-value));
}

// Each thread has an element of three arrays, and its chains start there.
__device__ __forceinline__ int own_element()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

template <bool Wide, bool Turned, bool Power>
__device__ __forceinline__ void rounds_of(Chains& own, int rounds, double factor, double addend, unsigned by)
{
#pragma unroll 4
    for (int round = 0; round < rounds; ++round) {
        if (Wide) step_wide(own.wide, factor, addend);
        if (Turned) step_turned(own.turned, by);
        if (Power) step_power(own.power);
    }
}

#define PARAMETERS double *wide, unsigned *turned, float *power, int rounds, double factor, double addend, unsigned by

extern "C" __global__ void __launch_bounds__(1024, 2) together(PARAMETERS)
{
    const int i = own_element();
    Chains own{wide[i], turned[i], power[i]};
    rounds_of<true, true, true>(own, rounds, factor, addend, by);
    wide[i] = own.wide;
    turned[i] = own.turned;
    power[i] = own.power;
}

extern "C" __global__ void __launch_bounds__(1024, 2) in_turn(PARAMETERS)
{
    const int i = own_element();
    Chains own{wide[i], turned[i], power[i]};
    rounds_of<true, false, false>(own, rounds, factor, addend, by);
    rounds_of<false, true, false>(own, rounds, factor, addend, by);
    rounds_of<false, false, true>(own, rounds, factor, addend, by);
    wide[i] = own.wide;
    turned[i] = own.turned;
    power[i] = own.power;
}

extern "C" __global__ void __launch_bounds__(1024, 2) only_wide(PARAMETERS)
{
    const int i = own_element();
    Chains own{wide[i], 0, 0};
    rounds_of<true, false, false>(own, rounds, factor, addend, by);
    wide[i] = own.wide;
}

extern "C" __global__ void __launch_bounds__(1024, 2) only_turned(PARAMETERS)
{
    const int i = own_element();
    Chains own{0, turned[i], 0};
    rounds_of<false, true, false>(own, rounds, factor, addend, by);
    turned[i] = own.turned;
}

extern "C" __global__ void __launch_bounds__(1024, 2) only_power(PARAMETERS)
{
    const int i = own_element();
    Chains own{0, 0, power[i]};
    rounds_of<false, false, true>(own, rounds, factor, addend, by);
    power[i] = own.power;
}

// The control: a second chain for the same pipe, as independent of the first as another pipe's would be.
extern "C" __global__ void __launch_bounds__(1024, 2) only_turned_twice(PARAMETERS)
{
    const int i = own_element();
    unsigned first = turned[i];
    unsigned second = ~first;
#pragma unroll 4
    for (int round = 0; round < rounds; ++round) {
        step_turned(first, by);
        step_turned(second, by);
    }
    turned[i] = first - second;
}
