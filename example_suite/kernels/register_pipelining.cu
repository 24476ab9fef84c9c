// Loading the next value before computing with the current one.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (stall avoidance strategies).
//
// Every thread adds up g(value) over `steps` values; g is a chain of 64 dependent multiply-adds, about 256 cycles, and a
// value takes several hundred cycles to arrive from memory.  With few warps on an SM nobody else fills that wait:
//
//   plain        load, wait, compute, and again: a step takes both times, one after the other.
//   prefetch_1   loads the next value into a second register before it computes: a step takes the longer of the two.
//   prefetch_4   keeps four values on the way, in a ring of registers: a step takes the time of the computation.
//   async_tiles  as prefetch_4 through shared memory: cp.async copies 16 bytes per thread past the registers into one
//                half of a tile, while the block computes with the other half.
//
// The rule is that nothing between the load and the computation touches the register that is being loaded.  At full
// occupancy other warps hide the wait just as well, and prefetching gains nothing.
//
// In the machine code: the first use of a loaded register.  In `plain` the multiply-adds follow the LDG that feeds
// them; in the others they come before it is needed.  The loop over steps is not unrolled: otherwise the compiler would
// load ahead by itself, and all variants would be the same.  `steps` is at least 1; for the last two a multiple of 4.

#include <cuda_pipeline.h>

constexpr int kChain = 64;
constexpr int kAhead = 4;
constexpr int kBlock = 128;

// Starts at v and tends to 2 v.
__device__ __forceinline__ float g(float v)
{
    float x = v;
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
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        sum += g(*value);
        value += at.threads;
    }
    out[at.thread] = sum;
}

extern "C" __global__ void prefetch_1(const float* in, float* out, int steps)
{
    const Place at;
    const float* value = in + at.thread;
    float sum = 0.0f;
    float next = *value;
#pragma unroll 1
    for (int k = 1; k < steps; ++k) {
        const float current = next;
        value += at.threads;
        next = *value;
        sum += g(current);
    }
    out[at.thread] = sum + g(next);
}

extern "C" __global__ void prefetch_4(const float* in, float* out, int steps)
{
    const Place at;
    const float* value = in + at.thread;
    float ring[kAhead];
#pragma unroll
    for (int slot = 0; slot < kAhead; ++slot) {
        ring[slot] = *value;
        value += at.threads;
    }
    float sum = 0.0f;
#pragma unroll 1
    for (int k = kAhead; k < steps; k += kAhead) {
#pragma unroll
        for (int slot = 0; slot < kAhead; ++slot) {
            const float current = ring[slot];
            ring[slot] = *value;
            value += at.threads;
            sum += g(current);
        }
    }
#pragma unroll
    for (int slot = 0; slot < kAhead; ++slot) sum += g(ring[slot]);
    out[at.thread] = sum;
}

// Starts copying the block's next kAhead rows of kBlock values: a warp copies one row, 16 bytes per thread.
__device__ __forceinline__ void copy_tile(float (&tile)[kAhead][kBlock], const float* in, int first, const Place& at)
{
    const int row = threadIdx.x / 32;
    const int column = threadIdx.x % 32 * 4;
    const float* from = in + static_cast<long long>(first + row) * at.threads + blockIdx.x * kBlock + column;
    __pipeline_memcpy_async(&tile[row][column], from, 16);
    __pipeline_commit();
}

extern "C" __global__ void __launch_bounds__(kBlock) async_tiles(const float* in, float* out, int steps)
{
    __shared__ alignas(16) float tiles[2][kAhead][kBlock];
    const Place at;
    float sum = 0.0f;
    copy_tile(tiles[0], in, 0, at);
#pragma unroll 1
    for (int k = 0; k < steps; k += kAhead) {
        const int half = k / kAhead % 2;
        if (k + kAhead < steps) {
            copy_tile(tiles[1 - half], in, k + kAhead, at);
            __pipeline_wait_prior(1);  // the copy before the one just started
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();  // every thread's part of the tile is there
#pragma unroll
        for (int row = 0; row < kAhead; ++row) sum += g(tiles[half][row][threadIdx.x]);
        __syncthreads();  // nobody reads the tile any more
    }
    out[at.thread] = sum;
}
