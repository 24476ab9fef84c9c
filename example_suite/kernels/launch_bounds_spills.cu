// __launch_bounds__(256, Blocks): the block size, and how many blocks an SM shall hold at the least.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (limits on registers).
//
// A thread keeps a ring of Length values and lets it flow: in every step each value takes half of its neighbour's.  The
// whole ring is in use all the time, so what does not fit into registers goes out and comes back in every step.
//
//   flow<40, 1>        one block per SM: no limit on registers but the hardware's.  It takes 74: three blocks.
//   flow<40, 5>        65 536 / (5 x 256) = 51, in lots of 8: 48 registers.  The ring fits, nothing is spilled.
//   flow<40, 6>        40 registers: as many as the ring has values, so some have to go.
//   flow<40, 8>        32 registers: most of the ring is in local memory.  All the warps that an SM can hold, and every
//                      one of them waits for the cache.
//   flow<12, 8>        the control: a ring that fits into 32 registers pays nothing for the same wish.
//
// In the machine code: registers, STL and LDL inside of the loop.  The values are computed alike, to the last bit.  On
// sm_120 an SM holds 48 warps: 8 blocks of 256 threads are more than it can, and the compiler ignores the wish.

template <int Length, int Blocks>
__global__ void __launch_bounds__(256, Blocks) flow(const float* in, float* out, int n, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float ring[Length];
#pragma unroll
    for (int k = 0; k < Length; ++k) ring[k] = in[static_cast<long long>(k) * n + i];
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const float first = ring[0];
#pragma unroll
        for (int k = 0; k < Length - 1; ++k) ring[k] += 0.5f * (ring[k + 1] - ring[k]);
        ring[Length - 1] += 0.5f * (first - ring[Length - 1]);
    }
#pragma unroll
    for (int k = 0; k < Length; ++k) out[static_cast<long long>(k) * n + i] = ring[k];
}
