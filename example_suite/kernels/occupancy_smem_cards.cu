// Shared memory as the limit of occupancy: smaller hands, more players.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (the card dealing analogy)
// and the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (limited by shared
// memory).
//
// An SM deals its shared memory to blocks like a dealer deals cards to players: only whole hands, and what is left of
// the deck is of no use.  One kernel that needs a line of shared memory per thread, launched with two sizes of hands:
//
//                     A100, 164 KB to deal                 H200, 228 KB to deal
//   128 threads       70 KB:   2 blocks,  8 warps          98 KB:   2 blocks,  8 warps
//    96 threads       52.5 KB: 3 blocks,  9 warps          73.5 KB: 3 blocks,  9 warps
//
// Three quarters of the hand for three quarters of the threads: less is left over, and one warp more is resident.  The
// talk's own sizes do not show this on an H200, where both give 12 warps.  A block costs another 1 KB, which the
// hardware keeps for itself.
//
// In the machine code: nothing changes, it is the same kernel.  Look at the occupancy and at what limits it; then at
// the time: with 8 of 64 warps there are too few loads in flight to keep the memory busy.

// Each tile of blockDim.x elements comes out in reverse order; so does the shorter one at the end.
extern "C" __global__ void reverse_tiles(const float* in, float* out, long long n)
{
    extern __shared__ float hand[];  // the launch asks for more of it than is used here
    const int card = threadIdx.x;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.x; first < n; first += step) {
        const long long left = n - first;
        const int cards = left < blockDim.x ? static_cast<int>(left) : static_cast<int>(blockDim.x);
        if (card < cards) hand[card] = in[first + card];
        __syncthreads();
        if (card < cards) out[first + card] = hand[cards - 1 - card];
        __syncthreads();  // the next round overwrites what slower warps may still be reading
    }
}
