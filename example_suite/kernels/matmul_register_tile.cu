// Tiles of registers: a matrix product that is fastest at the lowest occupancy.
// From the blog article "Five basic performance advice for porting kernels to the GPU" (when to stop: the occupancy
// trap); the kernel with one element per thread is that of the "Optimization" chapter of a CUDA course.
//
// C = A B for square row-major matrices of n x n floats; n is a multiple of the tile.  A block of 16 x 16 threads owns
// a tile of C and walks along k in slices of 16, staged in shared memory.  A thread owns PerThread x PerThread elements
// of the tile, and keeps their sums in registers:
//
//   register_tile<1>   one element: two loads from shared memory for every multiply-add.  Full occupancy.
//   register_tile<2>   four: one load per multiply-add.
//   register_tile<4>   sixteen: a half.
//   register_tile<8>   64: a quarter, as vectors of four even a sixteenth.  So many registers that an SM holds two
//                      blocks, a quarter of the warps that it could.
//
// What limits the first is shared memory: an SM loads one row of 32 words per cycle and could do four rows of
// multiply-adds.  More warps do not help against that.  64 independent multiply-adds per thread do, and they hide their
// own latency as well.  Fewer warps are the price and not the cause: the first kernel, with shared memory that it does
// not use, has as few of them as the last, and gains nothing.
//
// In the machine code: FFMA against LDS, and LDS.128 in the last two.  Registers, and what follows for occupancy.
//
// The slice of A is staged by columns, so that a thread's rows lie side by side; four words of padding move each column
// on by four banks.  A thread of the last kernel owns two groups of four columns, 64 apart: 16 lanes then read 256
// bytes in a row, where groups side by side would have them take turns.

using Offset = long long;

constexpr int kThreads = 16;  // along each side of a block
constexpr int kDepth = 16;    // of a slice

template <int PerThread>
struct Tile {
    static constexpr int side = kThreads * PerThread;
    static constexpr int blocks = PerThread < 8 ? 8 / PerThread : 2;  // that fit an SM at least
    static constexpr int group = PerThread < 4 ? PerThread : 4;  // neighbours that one load brings

    // Where a thread's element lies in the tile.
    static __device__ __forceinline__ int place(int thread, int element)
    {
        return element / group * (kThreads * group) + thread * group + element % group;
    }
};

template <int PerThread>
__global__ void __launch_bounds__(256, Tile<PerThread>::blocks)
    register_tile(const float* A, const float* B, float* C, int n)
{
    using Own = Tile<PerThread>;
    __shared__ alignas(16) float tile_a[kDepth][Own::side + 4];
    __shared__ alignas(16) float tile_b[kDepth][Own::side];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int thread = y * kThreads + x;
    const Offset first_row = static_cast<Offset>(blockIdx.y) * Own::side;
    const Offset first_column = static_cast<Offset>(blockIdx.x) * Own::side;
    float sums[PerThread][PerThread] = {};
#pragma unroll 1
    for (int first = 0; first < n; first += kDepth) {
#pragma unroll
        for (int i = 0; i < PerThread; ++i) {
            const int row = y + kThreads * i;
            tile_a[x][row] = A[(first_row + row) * n + first + x];
            const int k = (thread + 256 * i) / Own::side;
            const int column = (thread + 256 * i) % Own::side;
            tile_b[k][column] = B[static_cast<Offset>(first + k) * n + first_column + column];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float a[PerThread];
            float b[PerThread];
#pragma unroll
            for (int i = 0; i < PerThread; ++i) {
                a[i] = tile_a[k][Own::place(y, i)];
                b[i] = tile_b[k][Own::place(x, i)];
            }
#pragma unroll
            for (int i = 0; i < PerThread; ++i) {
#pragma unroll
                for (int j = 0; j < PerThread; ++j) sums[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();  // the next round overwrites what slower warps may still be reading
    }
#pragma unroll
    for (int i = 0; i < PerThread; ++i) {
#pragma unroll
        for (int j = 0; j < PerThread; ++j) {
            C[(first_row + Own::place(y, i)) * n + first_column + Own::place(x, j)] = sums[i][j];
        }
    }
}
