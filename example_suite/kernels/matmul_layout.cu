// Which index of a matrix product runs along threadIdx.x: the layout decides.
// From the "Optimization" chapter of a CUDA course (coalesced memory access comes first in its checklist).
//
// C = A B for square matrices of n x n floats, n a multiple of the block's sides.  Each thread owns one element of C
// and adds up n products, straight from global memory.  The two kernels differ in which element that is.
//
//   columns_along_x   threadIdx.x counts columns of C.  With rows in a row, a warp reads one element of A for all lanes
//                     (1 sector), and 32 neighbours of B (4 sectors).
//   rows_along_x      threadIdx.x counts rows of C.  A warp reads 32 elements of A, a whole row apart: 32 sectors, of
//                     which it uses 4 bytes each.  The element of B is the same for all lanes.
//
// No assignment is right by itself.  Store the matrices by columns, and rows_along_x is the fast one: neighbouring
// threads have to touch neighbouring addresses, whatever the indices are called.
//
// In the machine code: nothing.  Both loops have two LDG for one FFMA.  The naive loads of rows_along_x mostly hit the
// L1, since the next 31 products use the rest of the line: what costs is that the L1 looks up 32 lines per request,
// one after the other.

using Offset = long long;

struct RowMajor {
    static __device__ __forceinline__ Offset at(int row, int column, int n)
    {
        return static_cast<Offset>(row) * n + column;
    }
};

struct ColumnMajor {
    static __device__ __forceinline__ Offset at(int row, int column, int n)
    {
        return static_cast<Offset>(column) * n + row;
    }
};

template <typename Layout>
__device__ __forceinline__ void product(const float* A, const float* B, float* C, int row, int column, int n)
{
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += A[Layout::at(row, k, n)] * B[Layout::at(k, column, n)];
    C[Layout::at(row, column, n)] = sum;
}

template <typename Layout>
__global__ void columns_along_x(const float* A, const float* B, float* C, int n)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    product<Layout>(A, B, C, row, column, n);
}

template <typename Layout>
__global__ void rows_along_x(const float* A, const float* B, float* C, int n)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int column = blockIdx.y * blockDim.y + threadIdx.y;
    product<Layout>(A, B, C, row, column, n);
}
