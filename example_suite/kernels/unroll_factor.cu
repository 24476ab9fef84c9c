// How far to unroll a loop: until the loop's own instructions are gone, and not beyond the instruction cache.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (tune loop unroll factors).
//
// Every thread lets a mass on a spring swing for a number of small steps: two dependent multiply-adds each.  The loop
// around them adds, compares and jumps, which is more than the step itself.
//
//   swing<1>       a step per round: more than half of the instructions are the loop's.
//   swing<16>      16 steps per round: the loop is a tenth of it.
//   swing<256>     8 KB of machine code: nothing left to gain.
//   swing<2048>    64 KB: more than a scheduler's own instruction cache, less than the one that an SM's four share.
//   swing<8192>    256 KB: more than that one too (128 KB on a V100).  Every round comes from the L2, for every SM, and
//                  warps wait for instructions.
//
// An instruction takes 16 bytes, and a step two instructions: 32 bytes.  The steps are the same in all variants and so
// is the result, bit by bit.  Unrolling doubles by recursion here: the compiler refuses `#pragma unroll` for bodies as
// large as the last ones, for a good reason.
//
// In the machine code: FFMA against everything else of the loop, and the size of the code.  No instruction tells that
// its neighbours do not fit the cache; a profiler does, by warps that are stalled for "no instruction".
//
// `steps` is a multiple of the factor.

template <int Steps>
__device__ __forceinline__ void advance(float& place, float& speed, float stiffness)
{
    if constexpr (Steps == 1) {
        speed = fmaf(-stiffness, place, speed);
        place = fmaf(stiffness, speed, place);
    } else {
        advance<Steps / 2>(place, speed, stiffness);
        advance<Steps / 2>(place, speed, stiffness);
    }
}

template <int Factor>
__global__ void __launch_bounds__(512) swing(const float* in, float* out, float stiffness, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float place = in[i];
    float speed = 0.0f;
#pragma unroll 1
    for (int first = 0; first < steps; first += Factor) advance<Factor>(place, speed, stiffness);
    out[i] = place;
}
