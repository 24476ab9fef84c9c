// Multiplying matrices: every load from global memory should be used more than once.
// From the "Optimization" chapter of a CUDA course (shared memory for data reuse).
//
// C = A B for square row-major matrices of n x n floats; n is a multiple of the block's width.  Each thread owns
// one element of C and adds up n products.
//
//   matmul_naive    reads a row of A and a column of B from global memory: two loads for one multiply-add, which is
//                   1/4 FLOP per byte.
//   matmul_tiled16  a block of 16 x 16 threads stages a tile of A and a tile of B in shared memory; each staged
//   matmul_tiled32  element serves a whole row or column of the block, so that two loads feed 16 (32) multiply-adds:
//                   width / 4 FLOP per byte, which is 4 (8).  (The chapter's own table prints half of that.)
//
//   matmul_past_l1  the control: naive, but every load goes to the L2.  What tiling is worth without an L1 beside it.
//
// In the machine code: count FFMA against LDG.  The naive loop has half as many, the tiled loops 8 and 16 times as
// many, with LDS and two BAR per tile instead.  What no count shows: the naive loads mostly hit the L1 cache, because
// the threads of a block share rows and columns there too.  So the gain in time is far below the gain in loads.

// Offsets are 64 bits wide: n * n exceeds an int from n = 46341 on.
using Offset = long long;

template <typename Load>
__device__ __forceinline__ void matmul_untiled(const float* A, const float* B, float* C, int n, Load load)
{
    const Offset row = static_cast<Offset>(blockIdx.y) * blockDim.y + threadIdx.y;
    const Offset column = static_cast<Offset>(blockIdx.x) * blockDim.x + threadIdx.x;
    const float* a = A + row * n;
    const float* b = B + column;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        sum += load(a + k) * load(b);
        b += n;
    }
    C[row * n + column] = sum;
}

extern "C" __global__ void matmul_naive(const float* A, const float* B, float* C, int n)
{
    matmul_untiled(A, B, C, n, [](const float* from) { return *from; });
}

extern "C" __global__ void matmul_past_l1(const float* A, const float* B, float* C, int n)
{
    matmul_untiled(A, B, C, n, [](const float* from) { return __ldcg(from); });
}

template <int Width>
__device__ __forceinline__ void matmul_tiled(const float* A, const float* B, float* C, int n)
{
    __shared__ float tile_a[Width][Width];
    __shared__ float tile_b[Width][Width];
    const int y = threadIdx.y;
    const int x = threadIdx.x;
    const Offset row = static_cast<Offset>(blockIdx.y) * Width + y;
    const Offset column = static_cast<Offset>(blockIdx.x) * Width + x;
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < n; first += Width) {
        tile_a[y][x] = A[row * n + first + x];
        tile_b[y][x] = B[static_cast<Offset>(first + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Width; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();  // the next round overwrites what slower warps may still be reading
    }
    C[row * n + column] = sum;
}

extern "C" __global__ void matmul_tiled16(const float* A, const float* B, float* C, int n)
{
    matmul_tiled<16>(A, B, C, n);
}

extern "C" __global__ void matmul_tiled32(const float* A, const float* B, float* C, int n)
{
    matmul_tiled<32>(A, B, C, n);
}
