// An array that is indexed at run time does not fit into registers.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 4).
//
// Every row of A gains, ten times over, the sum of the same row of B, in the columns that the row's indirections
// name; a column named twice gains twice.  All three arrays are column-major, (row, column) is at
// row + column * rows, so that the threads of a warp read neighbours.
//
//   add_indexed  sums[column[d]]: registers have no addresses, so the array goes to the stack, which is local
//                memory: every addition becomes a load and a store.
//   add_switch   a switch over literal columns: every index is a constant, the array stays in registers.
//   add_chain    looks like the switch, but the compiler recognises the unrolled chain of comparisons and turns
//                it back into an index (on sm_80 and sm_90, not on sm_120).  Trust the machine code, not the source.
//   pick_of_three  one of three doubles: a stack frame of 24 bytes, as in the article's log.
//
// Sizes: the article has 2^27 rows of 3 columns.  With 3 columns this compiler finds a way without a stack, so the
// timed version has 4; and 2^26 rows: three arrays and a copy to start from are 4 GB, far beyond any cache.
//
// In the machine code: LDL and STL, and the stack frame of 4 bytes per column.  The switch leaves its last case to
// `default`: three comparisons stay branches, a fourth literal case would make them a jump table (BRX).

constexpr int kRepeats = 10;

__device__ __forceinline__ long long row_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <typename T, int Columns>
__device__ __forceinline__ void load_row(const T* from, long long row, long long rows, T (&values)[Columns])
{
#pragma unroll
    for (int d = 0; d < Columns; ++d) values[d] = from[row + d * rows];
}

template <int Columns>
__device__ __forceinline__ void store_row(float* to, long long row, long long rows, const float (&values)[Columns])
{
#pragma unroll
    for (int d = 0; d < Columns; ++d) to[row + d * rows] = values[d];
}

// The sum of a row, added term by term.
template <int Columns>
__device__ __forceinline__ void add_terms(float& sum, const float (&terms)[Columns])
{
#pragma unroll
    for (int e = 0; e < Columns; ++e) sum += terms[e];
}

template <int Columns>
__global__ void add_indexed(float* A, const float* B, const int* indirection, long long rows)
{
    const long long row = row_index();
    if (row >= rows) return;
    float sums[Columns];
    float terms[Columns];
    int column[Columns];
    load_row(A, row, rows, sums);
    load_row(B, row, rows, terms);
    load_row(indirection, row, rows, column);
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
#pragma unroll
        for (int d = 0; d < Columns; ++d) add_terms(sums[column[d]], terms);
    }
    store_row(A, row, rows, sums);
}

extern "C" __global__ void add_switch(float* A, const float* B, const int* indirection, long long rows)
{
    constexpr int kColumns = 4;
    const long long row = row_index();
    if (row >= rows) return;
    float sums[kColumns];
    float terms[kColumns];
    int column[kColumns];
    load_row(A, row, rows, sums);
    load_row(B, row, rows, terms);
    load_row(indirection, row, rows, column);
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
#pragma unroll
        for (int d = 0; d < kColumns; ++d) {
            switch (column[d]) {
            case 0: add_terms(sums[0], terms); break;
            case 1: add_terms(sums[1], terms); break;
            case 2: add_terms(sums[2], terms); break;
            default: add_terms(sums[3], terms); break;
            }
        }
    }
    store_row(A, row, rows, sums);
}

extern "C" __global__ void add_chain(float* A, const float* B, const int* indirection, long long rows)
{
    constexpr int kColumns = 4;
    const long long row = row_index();
    if (row >= rows) return;
    float sums[kColumns];
    float terms[kColumns];
    int column[kColumns];
    load_row(A, row, rows, sums);
    load_row(B, row, rows, terms);
    load_row(indirection, row, rows, column);
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
#pragma unroll
        for (int d = 0; d < kColumns; ++d) {
#pragma unroll
            for (int literal = 0; literal < kColumns; ++literal) {
                if (column[d] == literal) add_terms(sums[literal], terms);
            }
        }
    }
    store_row(A, row, rows, sums);
}

// The article's first case: three doubles, and an index from memory that only the run knows.
extern "C" __global__ void pick_of_three(double* out, const double* in, const int* indices)
{
    const long long row = row_index();
    double three[3];
#pragma unroll
    for (int d = 0; d < 3; ++d) three[d] = in[3 * row + d];
    three[indices[row]] *= 2.0;
    out[row] = three[0] + three[1] + three[2];
}
