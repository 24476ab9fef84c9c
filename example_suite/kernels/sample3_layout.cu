// The same loop over two layouts of a matrix.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 3).
//
// One thread adds up one row, or one column.  What counts is where the 32 threads of a warp are at the same moment:
//
//   sum_rows<ColumnMajor>     neighbouring threads read neighbouring floats: 4 sectors per load, all of them used.
//   sum_rows<RowMajor>        each thread walks along its own row: neighbours are a row apart, 32 sectors per load, and
//                             4 of the 32 bytes of each are used.  The rest is used by the next loads, if the sector is
//                             still in the cache by then.
//   sum_rows_of_doubles<...>  8 sectors in a row, 32 a row apart: twice as large, a number fills a quarter of a sector.
//   sum_columns<...>          the mirror image: now the row-major matrix is the fast one.
//
// So no layout is right by itself, only for a kernel.  (The article prints the two times swapped: its LayoutLeft is
// column-major and the faster one here.)
//
// Sizes: the article sums 10 000 rows of 10 000, one thread per row.  That is two or three warps for each of an H200's
// 132 SMs, or an RTX 6000 Ada's 142, which leaves them idle.  Here 2^22 rows of 64 give every place of the GPU a
// thread: the layouts differ by the sectors that they move, not by the latency of a few loads.
//
// In the machine code: nothing; both have the same loads in the same loop, unrolled by 8, which keeps 32 bytes per
// thread on their way.  Only the stride differs.

struct ColumnMajor {
    static __device__ __forceinline__ long long at(long long row, long long column, long long rows, long long)
    {
        return row + column * rows;
    }
};

struct RowMajor {
    static __device__ __forceinline__ long long at(long long row, long long column, long long, long long columns)
    {
        return row * columns + column;
    }
};

__device__ __forceinline__ long long global_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <typename Layout>
__global__ void sum_rows(float* sums, const float* A, long long rows, long long columns)
{
    const long long row = global_index();
    if (row >= rows) return;
    float sum = 0.0f;
#pragma unroll 8
    for (long long column = 0; column < columns; ++column) sum += A[Layout::at(row, column, rows, columns)];
    sums[row] = sum;
}

template <typename Layout>
__global__ void sum_rows_of_doubles(double* sums, const double* A, long long rows, long long columns)
{
    const long long row = global_index();
    if (row >= rows) return;
    double sum = 0.0;
#pragma unroll 8
    for (long long column = 0; column < columns; ++column) sum += A[Layout::at(row, column, rows, columns)];
    sums[row] = sum;
}

template <typename Layout>
__global__ void sum_columns(float* sums, const float* A, long long rows, long long columns)
{
    const long long column = global_index();
    if (column >= columns) return;
    float sum = 0.0f;
#pragma unroll 8
    for (long long row = 0; row < rows; ++row) sum += A[Layout::at(row, column, rows, columns)];
    sums[column] = sum;
}
