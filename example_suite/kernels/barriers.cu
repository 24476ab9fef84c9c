// Barriers in branches: which are allowed.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (barriers, briefly).
//
// A block of 32 x 2 x 2 threads has two halves, by threadIdx.z; here these are whole warps.  Each thread makes a value,
// the lower half's in one way and the upper half's in another, leaves it in shared memory, waits, and reads the value
// of its partner in the other half.
//
//   converged            one __syncthreads() that all threads reach.  The way to write it.
//   sync_divergent       each side of the branch has a __syncthreads() of its own.  Undefined behaviour: all threads
//                        must reach the same one.  Compiled here to look at, never launched; compute-sanitizer's
//                        synccheck is the tool that finds it.
//   group_sync           the same with the barrier of a cooperative group, which counts threads wherever they wait.
//   tile_sync            groups inside a warp: tiles of eight lanes.  Every other tile waits at its own barrier, in a
//                        branch that splits the warp; the tiles between never call it.  Reads the next lane's value.
//   sync_after_exit      the upper half returns at once.  Threads that have exited are not waited for, so the others
//                        may still use __syncthreads(); each reads its neighbour's value.
//
// In the PTX: __syncthreads() is `bar.sync`, which promises that all threads of a warp are here together; the group's
// barrier is `barrier.sync`, without that promise.  The machine code has BAR for both, and for the second also a BAR
// that counts the threads of a split warp.  A tile's barrier is WARPSYNC, with the lanes of the tile as its mask.

#include <cooperative_groups.h>

constexpr int kSide = 64;  // threads of a half
constexpr int kBlock = 2 * kSide;

__device__ __forceinline__ float lower(float x)
{
    return 2.0f * x + 1.0f;
}

__device__ __forceinline__ float upper(float x)
{
    return 3.0f * x - 1.0f;
}

struct Place {
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int partner = (thread + kSide) % kBlock;
    long long element = static_cast<long long>(blockIdx.x) * kBlock + thread;
};

extern "C" __global__ void converged(const float* in, float* out)
{
    __shared__ float values[kBlock];
    const Place at;
    const float x = in[at.element];
    values[at.thread] = threadIdx.z % 2 ? upper(x) : lower(x);
    __syncthreads();
    out[at.element] = values[at.partner];
}

extern "C" __global__ void sync_divergent(const float* in, float* out)
{
    __shared__ float values[kBlock];
    const Place at;
    const float x = in[at.element];
    if (threadIdx.z % 2) {
        values[at.thread] = upper(x);
        __syncthreads();
        out[at.element] = values[at.partner];
    } else {
        values[at.thread] = lower(x);
        __syncthreads();
        out[at.element] = values[at.partner];
    }
}

extern "C" __global__ void group_sync(const float* in, float* out)
{
    __shared__ float values[kBlock];
    const cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
    const Place at;
    const float x = in[at.element];
    if (threadIdx.z % 2) {
        values[at.thread] = upper(x);
        block.sync();
        out[at.element] = values[at.partner];
    } else {
        values[at.thread] = lower(x);
        block.sync();
        out[at.element] = values[at.partner];
    }
}

extern "C" __global__ void tile_sync(const float* in, float* out)
{
    __shared__ float values[kBlock];
    const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
    const Place at;
    const float x = in[at.element];
    if (tile.meta_group_rank() % 2) {
        const int first = at.thread - tile.thread_rank();
        values[at.thread] = upper(x);
        tile.sync();
        out[at.element] = values[first + (tile.thread_rank() + 1) % tile.size()];
    } else {
        out[at.element] = lower(x);
    }
}

extern "C" __global__ void sync_after_exit(const float* in, float* out)
{
    __shared__ float values[kSide];
    const Place at;
    if (threadIdx.z % 2) return;
    values[at.thread] = lower(in[at.element]);
    __syncthreads();
    out[at.element] = values[(at.thread + 1) % kSide];
}
