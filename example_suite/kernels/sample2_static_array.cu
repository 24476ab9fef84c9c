// Columns counted at run time, or by a template argument.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 2).
//
// Ten times over, every column of a row of A gains the sum of that row of B.  Both are column-major, (row, column) is
// at row + column * rows, so that the threads of a warp read neighbours.
//
//   add_rows_naive      the number of columns is a kernel argument, and every addition goes to A itself: 90 stores per
//                       thread with three columns.
//   add_rows_static<3>  the number of columns is a template argument: the row of A and that of B are arrays whose
//                       every index is known to the compiler, so they are registers; A is touched once.
//   add_rows_stack      has the same arrays, but the number of columns is a kernel argument again: their indices are
//                       not known, and they live on the stack.  A control: it lacks nothing but that knowledge.
//
// In the machine code: 6 LDG and 3 STG, no loop and no stack, against loops around a load and a store.  The
// caller picks the instantiation; a number of columns that nobody foresaw does not compile.

constexpr int kRepeats = 10;

__device__ __forceinline__ long long row_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Plain pointers: B could overlap A, so the compiler writes every sum.
extern "C" __global__ void add_rows_naive(float* A, float* B, long long rows, int columns)
{
    const long long row = row_index();
    if (row >= rows) return;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        for (int d = 0; d < columns; ++d) {
            for (int e = 0; e < columns; ++e) A[row + d * rows] += B[row + e * rows];
        }
    }
}

// Takes what add_rows_naive takes, so that the one can stand in for the other; it knows the number of columns.
template <int Columns>
__global__ void add_rows_static(float* A, float* B, long long rows, int)
{
    static_assert(1 <= Columns && Columns <= 3, "a row has one to three columns");
    const long long row = row_index();
    if (row >= rows) return;
    float sums[Columns];
    float terms[Columns];
#pragma unroll
    for (int d = 0; d < Columns; ++d) sums[d] = A[row + d * rows];
#pragma unroll
    for (int d = 0; d < Columns; ++d) terms[d] = B[row + d * rows];
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
#pragma unroll
        for (int d = 0; d < Columns; ++d) {
#pragma unroll
            for (int e = 0; e < Columns; ++e) sums[d] += terms[e];
        }
    }
#pragma unroll
    for (int d = 0; d < Columns; ++d) A[row + d * rows] = sums[d];
}

// `columns` is at most 3.
extern "C" __global__ void add_rows_stack(float* A, float* B, long long rows, int columns)
{
    constexpr int kMost = 3;
    const long long row = row_index();
    if (row >= rows) return;
    float sums[kMost];
    float terms[kMost];
    for (int d = 0; d < columns; ++d) sums[d] = A[row + d * rows];
    for (int d = 0; d < columns; ++d) terms[d] = B[row + d * rows];
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        for (int d = 0; d < columns; ++d) {
            for (int e = 0; e < columns; ++e) sums[d] += terms[e];
        }
    }
    for (int d = 0; d < columns; ++d) A[row + d * rows] = sums[d];
}
