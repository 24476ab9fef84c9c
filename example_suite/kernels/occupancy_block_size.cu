// How many threads to a block.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (thread block size).
//
// One plain copy, launched with blocks of 32, 64, 768 and 1024 threads.  The kernel needs few registers and no
// shared memory, so only the SM's slots limit how many of its threads are resident.  On Hopper these are 64 warps
// and 32 blocks:
//
//   32 threads    32 blocks of 1 warp: all block slots taken, half of the warp slots empty.  50 %.
//   64 threads    32 blocks of 2 warps: both are full.  100 %.
//   768 threads   24 warps a block; 2 blocks fit, a third does not.  75 %.
//   1024 threads  32 warps a block, 2 blocks.  100 %.
//
// In the machine code: nothing changes, the same kernel serves all.  Look at the occupancy and what limits it.
//
// Occupancy is not all.  On an H200 blocks of 64 threads are launched no faster than blocks of 32, 1.66 per nanosecond,
// and that alone is what either takes.  With 1024 the launches keep up, and Little's law is the limit: one 4-byte load
// per resident thread, 1.08 MB in all, that return after about a microsecond.
//
// copy_in_rounds lifts both limits: its blocks stay, and each thread has eight loads under way.  Then half of the
// occupancy (32 blocks of 32 threads per SM) is as fast as all of it (32 blocks of 64).

extern "C" __global__ void copy_elements(const float* in, float* out, long long n)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

// `n` and a round's elements together are less than 2^31.
extern "C" __global__ void __maxnreg__(32) copy_in_rounds(const float* in, float* out, int n)
{
    constexpr int kLoads = 8;
    const int threads = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int first = blockIdx.x * blockDim.x + threadIdx.x; first < n; first += kLoads * threads) {
        float held[kLoads];
#pragma unroll
        for (int k = 0; k < kLoads; ++k) held[k] = first + k * threads < n ? in[first + k * threads] : 0.0f;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            if (first + k * threads < n) out[first + k * threads] = held[k];
        }
    }
}

// The last thread of a block knows the number of its warp, and with it how many warps the block has.
extern "C" __global__ void count_warps(int* warps_of_block)
{
    if (threadIdx.x == blockDim.x - 1) warps_of_block[blockIdx.x] = threadIdx.x / warpSize + 1;
}
