// Work found by few threads, done by all: a queue in shared memory.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (work queueing in shared
// memory).
//
// Scouting is cheap: a hash of the item's number says whether there is anything to do.  Diving is long: a chain of
// dependent multiply-adds that ends at a known limit.  Few items need a dive.
//
//   dive_at_once      the thread that finds an item dives; the rest of its warp waits for it.
//   dive_from_queue   the thread puts the item into the block's queue.  When enough are in it, all threads of the block
//                     dive, side by side.  Blocks are small (64 threads), so that the barriers are cheap.
//   collect, dive_collected   two kernels: one writes the items to a list, the other one works through it.
//
// The queue cannot overflow: the block empties it at 128 items or more, a thread adds at most one per round, so it
// never holds more than 127 + 64 of its 192 places.  Threads that have nothing left to scout stay, to help with the
// dives and to reach the barriers.
//
// The talk's listing lacks one barrier, between the test of the queue's size and the next insertions: a slow warp tests
// after a fast one has inserted, sees a full queue where the other saw none, and waits at a barrier alone.
// dive_from_queue_racing is that listing; it is compiled to be looked at, and never launched.
//
// In the machine code: BAR, one more in the correct version.  What the queue gains shows in no instruction, only in how
// many lanes are active in the dive.

constexpr int kBlock = 64;
constexpr int kCapacity = 3 * kBlock;
constexpr int kEnough = kCapacity - kBlock;
constexpr int kItemsPerLane = 32;

// Avalanches an item's number: every bit of the result depends on every bit of it.
__device__ __forceinline__ unsigned hash(unsigned item)
{
    item ^= item >> 16;
    item *= 0x7feb352du;
    item ^= item >> 15;
    item *= 0x846ca68bu;
    return item ^ item >> 16;
}

// `share` is the part of all items that need a dive, in units of 2^-24.
__device__ __forceinline__ bool needs_dive(int item, int share)
{
    return static_cast<int>(hash(item) >> 8) < share;
}

// Ends at 2 b, for b in (0, 1].
__device__ __forceinline__ void dive(int item, float* out, int steps)
{
    const float b = ((hash(item) & 0xffffu) + 1) / 65536.0f;
    float x = b;
#pragma unroll 16
    for (int step = 0; step < steps; ++step) x = fmaf(x, 0.5f, b);
    out[item] = x;
}

// Takes what dive_from_queue takes, so that the one can stand in for the other; it has no queue to report on.
extern "C" __global__ void dive_at_once(float* out, int*, int n, int share, int steps)
{
    const int stride = gridDim.x * blockDim.x;
    for (int item = blockIdx.x * blockDim.x + threadIdx.x; item < n; item += stride) {
        if (needs_dive(item, share)) dive(item, out, steps);
    }
}

template <bool WithBarrier>
__device__ __forceinline__ void scout_and_queue(float* out, int* longest_queue, int n, int share, int steps)
{
    __shared__ int queue[kCapacity];
    __shared__ int size;
    __shared__ int finished;
    const int thread = threadIdx.x;
    const int stride = gridDim.x * blockDim.x;
    int item = blockIdx.x * blockDim.x + thread;
    bool scouting = item < n;
    int longest = 0;  // known to thread 0

    const auto empty_queue = [&] {
        for (int i = thread; i < size; i += kBlock) dive(queue[i], out, steps);
        __syncthreads();  // all have read the size
        if (thread == 0) {
            longest = max(longest, size);
            size = 0;
        }
    };

    if (thread == 0) {
        size = 0;
        finished = 0;
    }
    __syncthreads();
    if (!scouting) atomicAdd(&finished, 1);
    __syncthreads();
    while (finished < kBlock) {
        if (size >= kEnough) empty_queue();
        if constexpr (WithBarrier) __syncthreads();  // all have seen what was in the queue, and whether it was emptied
        if (scouting) {
            if (needs_dive(item, share)) queue[atomicAdd(&size, 1)] = item;
            scouting = item < n - stride;
            item += stride;
            if (!scouting) atomicAdd(&finished, 1);
        }
        __syncthreads();
    }
    empty_queue();
    if (thread == 0) atomicMax(longest_queue, longest);
}

extern "C" __global__ void __launch_bounds__(kBlock)
    dive_from_queue(float* out, int* longest_queue, int n, int share, int steps)
{
    scout_and_queue<true>(out, longest_queue, n, share, steps);
}

extern "C" __global__ void __launch_bounds__(kBlock)
    dive_from_queue_racing(float* out, int* longest_queue, int n, int share, int steps)
{
    scout_and_queue<false>(out, longest_queue, n, share, steps);
}

// Every warp scouts 1024 items and reserves its places in the list with one atomic addition.
extern "C" __global__ void collect(int* list, int* length, int n, int share)
{
    constexpr int kWarp = 32;
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    const int first = thread / kWarp * (kWarp * kItemsPerLane) + lane;
    unsigned hits = 0;
#pragma unroll 4
    for (int k = 0; k < kItemsPerLane; ++k) {
        const int item = first + k * kWarp;
        if (item < n && needs_dive(item, share)) hits |= 1u << k;
    }
    const int own = __popc(hits);
    int up_to_here = own;
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const int from_left = __shfl_up_sync(0xffffffffu, up_to_here, distance);
        if (lane >= distance) up_to_here += from_left;
    }
    int start = 0;
    if (lane == kWarp - 1) start = atomicAdd(length, up_to_here);
    int place = __shfl_sync(0xffffffffu, start, kWarp - 1) + up_to_here - own;
    for (; hits != 0; hits &= hits - 1) list[place++] = first + (__ffs(hits) - 1) * kWarp;
}

extern "C" __global__ void dive_collected(const int* list, const int* length, float* out, int steps)
{
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < *length; i += stride) dive(list[i], out, steps);
}
