// Spilling that pays: registers that a kernel holds while it waits are better given to more warps.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", which says that a limited
// use of local memory can be beneficial, and that buffers in registers may be moved to shared memory.
//
// Every thread makes Values numbers, follows a chain of `steps` records through a table larger than the L2, and then
// uses its numbers once more.  8 lanes follow a chain together: a record is a sector of 32 bytes, a word for each lane,
// and its first word says which record is next.  So each step is a load from device memory that waits for the one
// before.  What hides such a wait is other warps; but the numbers, idle all the while, take most of the registers.
//
//   in_registers<96>               what the compiler likes: 16 warps per SM
//   the same, -maxrregcount=64     32 warps: what does not fit is stored before the chain and loaded after it, once
//                           40     48 warps
//                           32     64 warps, all that an SM holds
//                           24     no more warps, only more spilling
//   half_in_shared<96>             every other number in shared memory: 32 warps, and nothing is spilled.  Shared
//                                  memory is about as large as the registers: it takes half, not all.
//   in_registers<8>                the control: with few numbers no limit on registers matters
//
// The other control is `steps`: after a short chain there was nothing to wait for, and the spilling is all cost.
//
// In the machine code: STL before the loop, LDL after it, and neither within.  All sums are exact, modulo 2^32.

constexpr int kLanes = 8;     // to a chain
constexpr int kBlock = 128;
constexpr unsigned kMix = 2654435761u;

// Each number depends on all before it: none is made anew for less than keeping it.
__device__ __forceinline__ unsigned following(unsigned number, unsigned given)
{
    return (number ^ given) * kMix + (number >> 15);
}

// Sum of the lane's words along the chain, which starts where the first of 8 lanes says.  Links are bytes from the
// table's beginning.  `mask` is the table's size less a record, and sets a start within bounds.
__device__ __forceinline__ unsigned follow(const char* table, unsigned mask, unsigned start, int steps)
{
    const unsigned place = threadIdx.x % kLanes * sizeof(unsigned);
    unsigned record = __shfl_sync(0xffffffffu, start, 0, kLanes) & mask;
    unsigned sum = 0;
#pragma unroll 1
    for (; steps > 0; --steps) {
        const unsigned word = *reinterpret_cast<const unsigned*>(table + (record + place));
        sum += word;
        record = __shfl_sync(0xffffffffu, word, 0, kLanes);
    }
    return sum;
}

// Whole blocks only: lanes that follow a chain together must all be there.
template <int Values>
__global__ void in_registers(const unsigned* given, const void* table, unsigned* out, unsigned mask, int n, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned numbers[Values];
    unsigned number = i;
#pragma unroll
    for (int k = 0; k < Values; ++k) {
        number = following(number, given[static_cast<long long>(k) * n + i]);
        numbers[k] = number;
    }
    const unsigned sum = follow(static_cast<const char*>(table), mask, number, steps);
    unsigned result = sum;
#pragma unroll
    for (int k = 0; k < Values; ++k) result = result * sum + numbers[k];
    out[i] = result;
}

template <int Values>
__global__ void half_in_shared(const unsigned* given, const void* table, unsigned* out, unsigned mask, int n,
                               int steps)
{
    __shared__ unsigned odd_numbers[Values / 2][kBlock];  // a column per thread: no two lanes want the same bank
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned even_numbers[Values / 2];
    unsigned number = i;
#pragma unroll
    for (int k = 0; k < Values; ++k) {
        number = following(number, given[static_cast<long long>(k) * n + i]);
        if (k % 2 == 0) even_numbers[k / 2] = number;
        else odd_numbers[k / 2][threadIdx.x] = number;
    }
    const unsigned sum = follow(static_cast<const char*>(table), mask, number, steps);
    unsigned result = sum;
#pragma unroll
    for (int k = 0; k < Values; ++k) {
        result = result * sum + (k % 2 == 0 ? even_numbers[k / 2] : odd_numbers[k / 2][threadIdx.x]);
    }
    out[i] = result;
}
