// Lanes of a warp that want the same bank of shared memory.
// From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (shared memory).
//
// Shared memory has 32 banks; word w is in bank w % 32, and a bank gives out one word per cycle.  Lanes that want
// different words of one bank are served one after the other; lanes that want the same word, together.  So what a load
// takes is the largest number of words that it wants from one bank:
//
//   lane l wants word l        1: a row of a tile.
//   0, 32, 64, 3, 4, ...       3: three lanes in bank 0.
//   32 l                       32: a column of a tile of 32 x 32 words.
//   33 l                       1: the same column, with a 33rd word in each row.
//   0                          1: broadcast.
//
// Which word each lane wants is an argument here; the code is the same for all.
//
//   chase_words  one load needs the result of the one before: what a lone warp waits for.
//   load_words   loads that do not need each other, from many warps: what the SM can deliver.
//
// In the machine code: LDS, and no trace of a conflict.  That is a matter of addresses; only counters and times show
// it.

constexpr int kWarp = 32;
constexpr int kReach = 1024;           // words from which a lane may pick its own
constexpr int kTile = 2 * kReach;      // the picked word moves on by less than kReach
constexpr int kUnrolled = 32;

__device__ __forceinline__ void fill(int (&tile)[kTile], const int* words)
{
    for (int w = threadIdx.x; w < kTile; w += blockDim.x) tile[w] = words[w];
    __syncthreads();
}

// All lanes move on by as many words, which leaves their banks as far apart as they were.  Unsigned, so that the sum
// may wrap around.
__device__ __forceinline__ unsigned sum_of_loads(const int (&tile)[kTile], int word, int loads)
{
    unsigned sum = 0;
#pragma unroll 1
    for (int done = 0; done < loads; done += kUnrolled) {
        const int* from = tile + word + done % kReach;
#pragma unroll
        for (int k = 0; k < kUnrolled; ++k) sum += from[k];
    }
    return sum;
}

// `words` has 2048; word_of_lane[l] is below 1024; `loads` is a multiple of 32.
extern "C" __global__ void load_words(unsigned* out, const int* words, const int* word_of_lane, int loads)
{
    __shared__ int tile[kTile];
    fill(tile, words);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum_of_loads(tile, word_of_lane[threadIdx.x % kWarp], loads);
}

// The low half of every word that is visited has to be the index of the word itself, so that a lane stays where it is;
// the high half is what is added up.  One warp.
extern "C" __global__ void chase_words(unsigned* out, const int* words, const int* word_of_lane, int loads)
{
    __shared__ int tile[kTile];
    fill(tile, words);
    int word = word_of_lane[threadIdx.x];
    unsigned sum = 0;
#pragma unroll 8
    for (int k = 0; k < loads; ++k) {
        const unsigned found = tile[word];
        sum += found >> 16;
        word = found & 0xffff;
    }
    out[threadIdx.x] = sum;
}
