// Loading the next value before computing with the current one.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (stall avoidance strategies).
//
// Every thread adds up what a chain of 64 dependent multiply-adds makes of each of `steps` values.  The chain takes
// about 256 cycles, a value several hundred to arrive from memory.  With few warps on an SM nobody else fills that
// wait:
//
//   plain        load, wait, compute, and again: a step takes both times, one after the other.
//   prefetch_1   loads the next value into a second register before it computes: a step takes the longer of the two.
//   prefetch_4   a ring of four registers: the next four values are on their way during a computation.
//   async_tiles  the same through shared memory: cp.async copies 16 bytes per thread past the registers into one half
//                of a tile, while the block computes with the other half.
//
// The rule is that nothing between a load and its use touches the register that is being loaded.  At full occupancy
// other warps hide the wait just as well, and prefetching gains nothing.
//
// In the machine code: the distance from LDG to the first FFMA that uses its register.  Look there, because the
// compiler likes to move such a load down behind the computation, to save the second register; nothing is prefetched
// then.  (__syncwarp, which costs no instruction here, keeps loads above it.)  The loop over steps is not unrolled, and
// every chain starts where the last one ended: otherwise the compiler would load ahead and run chains side by side in
// `plain`.
//
// `steps` is a multiple of 4, and not zero.

#include <cuda_pipeline.h>

constexpr int kChain = 64;
constexpr int kBlock = 128;
constexpr int kTileSteps = 4;

// Ends at 2 v, wherever it starts.
__device__ __forceinline__ float chain(float x, float v)
{
#pragma unroll
    for (int i = 0; i < kChain; ++i) x = fmaf(x, 0.5f, v);
    return x;
}

struct Place {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;  // a thread's next value is this many elements on
};

extern "C" __global__ void plain(const float* in, float* out, int steps)
{
    const Place at;
    const float* value = in + at.thread;
    float x = 0.0f;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        x = chain(x, *value);
        sum += x;
        value += at.threads;
    }
    out[at.thread] = sum;
}

template <int Ahead>
__device__ __forceinline__ void prefetch(const float* in, float* out, int steps)
{
    const Place at;
    const float* value = in + at.thread;
    float ring[Ahead];
#pragma unroll
    for (int slot = 0; slot < Ahead; ++slot) {
        ring[slot] = *value;
        value += at.threads;
    }
    float x = 0.0f;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = Ahead; k < steps; k += Ahead) {
#pragma unroll
        for (int slot = 0; slot < Ahead; ++slot) {
            const float current = ring[slot];
            ring[slot] = *value;
            value += at.threads;
            __syncwarp();  // the load stays before the computation
            x = chain(x, current);
            sum += x;
        }
    }
#pragma unroll
    for (int slot = 0; slot < Ahead; ++slot) {
        x = chain(x, ring[slot]);
        sum += x;
    }
    out[at.thread] = sum;
}

extern "C" __global__ void prefetch_1(const float* in, float* out, int steps)
{
    prefetch<1>(in, out, steps);
}

extern "C" __global__ void prefetch_4(const float* in, float* out, int steps)
{
    prefetch<4>(in, out, steps);
}

// Starts copying the block's next kTileSteps rows of kBlock values: a warp copies one row, 16 bytes per thread.
__device__ __forceinline__ void copy_tile(
    float (&tile)[kTileSteps][kBlock], const float* in, int first, const Place& at)
{
    const int row = threadIdx.x / 32;
    const int column = threadIdx.x % 32 * 4;
    const float* from = in + static_cast<long long>(first + row) * at.threads + blockIdx.x * kBlock + column;
    __pipeline_memcpy_async(&tile[row][column], from, 16);
    __pipeline_commit();
}

extern "C" __global__ void __launch_bounds__(kBlock) async_tiles(const float* in, float* out, int steps)
{
    __shared__ alignas(16) float tiles[2][kTileSteps][kBlock];
    const Place at;
    float x = 0.0f;
    float sum = 0.0f;
    copy_tile(tiles[0], in, 0, at);
#pragma unroll 1
    for (int k = 0; k < steps; k += kTileSteps) {
        const int half = k / kTileSteps % 2;
        if (k + kTileSteps < steps) {
            copy_tile(tiles[1 - half], in, k + kTileSteps, at);
            __pipeline_wait_prior(1);  // the copy before the one just started
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();  // every thread's part of the tile is there
#pragma unroll
        for (int row = 0; row < kTileSteps; ++row) {
            x = chain(x, tiles[half][row][threadIdx.x]);
            sum += x;
        }
        __syncthreads();  // nobody reads the tile any more
    }
    out[at.thread] = sum;
}
