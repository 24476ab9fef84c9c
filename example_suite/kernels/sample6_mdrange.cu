// The shape of a block, and how many of them there are.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 6).
//
// A five-point blur of a square image, column-major: (i, j) is at i + j * side.  Each thread owns one interior point.
//
//   blur_2d      the grid has two dimensions, like the image.  The article's library made blocks of 16 x 2 by default:
//                32 threads, of which an SM holds 32 blocks, half of its warps.  And a warp reads two pieces of 16
//                floats each, where 32 in a row would do.  With 32 x 8 or 64 x 4 nothing is wrong with two dimensions.
//   blur_linear  the grid has one dimension; blocks of 256.  Costs a division per thread.
//
// Controls tell the flaws apart: blocks of 16 x 16 keep the two pieces and lift the limit on blocks; the linear kernel
// with so much shared memory that half of its blocks fit loses the occupancy and nothing else.
//
// On an H200 the block of 32 has a third flaw, the worst: blocks are launched at 1.66 per nanosecond, whatever their
// size, so that small blocks of short threads come too slowly to fill the SMs.
//
// In the machine code: the two need as many registers.  (The article's library needed eight more for two dimensions.)
// Look at the occupancy, and at the time.

__device__ __forceinline__ void blur_point(float* A, const float* B, int i, int j, int side)
{
    constexpr float kFifth = 1.0f / 5.0f;
    const int centre = i + j * side;
    const float along_i = B[centre - 1] + B[centre + 1];
    const float along_j = B[centre - side] + B[centre + side];
    A[centre] = (B[centre] + along_i + along_j) * kFifth;
}

extern "C" __global__ void blur_2d(float* A, const float* B, int side)
{
    const int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
    const int j = 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= side - 1 || j >= side - 1) return;
    blur_point(A, B, i, j, side);
}

// The interior has (side - 2)^2 points; int is enough up to side = 32768, whose square is 2^30.
extern "C" __global__ void blur_linear(float* A, const float* B, int side)
{
    const int inner = side - 2;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= inner * inner) return;
    blur_point(A, B, 1 + point % inner, 1 + point / inner, side);
}
