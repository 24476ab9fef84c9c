// Transposing a batch of 32 x 32 matrices: coalescing and bank conflicts.
// From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
//
// One block of 32 x 32 threads per matrix, one element per thread, blockIdx.x is the matrix.  All kernels
// move the same bytes; they differ in which addresses a warp touches at once.
//
//   transpose_copy       no transpose: the ceiling for the others.
//   transpose_naive      a warp writes a column: 32 addresses 128 bytes apart, 32 sectors per store.
//   transpose_coalesced  turns the matrix round in shared memory, so that global stores are rows again;
//                        but a column of a 32-wide tile lies in a single bank, and the load takes 32 turns.
//   transpose_padded     a 33rd column moves every row on by one bank: no conflicts.
//   transpose_four       the control: as before, with four elements per thread.  What is left of the way to the peak
//                        is loads in flight, not addresses: 32 x 8 threads, four loads each before the barrier.
//
// In the machine code: the two tile versions have one STS, one LDS and one BAR and use 4096 and 4224 bytes of
// shared memory.  Nothing there tells the conflict; only the tile's width does.  (The talk's slide declares the
// tile as `float* tile[..]`; an array of pointers would be twice as large and no tile of floats.)

constexpr int kSide = 32;

// First element of this block's matrix; 64 bits, because a large batch has more than 2^31 bytes.
__device__ __forceinline__ long long matrix_offset()
{
    return static_cast<long long>(blockIdx.x) * (kSide * kSide);
}

extern "C" __global__ void transpose_copy(const float* in, float* out)
{
    const int row = threadIdx.y;
    const int column = threadIdx.x;
    in += matrix_offset();
    out += matrix_offset();
    out[row * kSide + column] = in[row * kSide + column];
}

extern "C" __global__ void transpose_naive(const float* in, float* out)
{
    const int row = threadIdx.y;
    const int column = threadIdx.x;
    in += matrix_offset();
    out += matrix_offset();
    out[column * kSide + row] = in[row * kSide + column];
}

// Width is the tile's row length in shared memory: 32 gives conflicts, 33 does not.
template <int Width>
__device__ __forceinline__ void transpose_through_tile(const float* in, float* out)
{
    __shared__ float tile[kSide][Width];
    const int row = threadIdx.y;
    const int column = threadIdx.x;
    tile[row][column] = in[row * kSide + column];
    __syncthreads();
    out[row * kSide + column] = tile[column][row];
}

extern "C" __global__ void transpose_coalesced(const float* in, float* out)
{
    transpose_through_tile<kSide>(in + matrix_offset(), out + matrix_offset());
}

extern "C" __global__ void transpose_padded(const float* in, float* out)
{
    transpose_through_tile<kSide + 1>(in + matrix_offset(), out + matrix_offset());
}

// For blocks of 32 x 8 threads.
extern "C" __global__ void transpose_four(const float* in, float* out)
{
    constexpr int kRows = 8;
    constexpr int kElements = kSide / kRows;
    __shared__ float tile[kSide][kSide + 1];
    const int row = threadIdx.y;
    const int column = threadIdx.x;
    in += matrix_offset();
    out += matrix_offset();
    float values[kElements];
#pragma unroll
    for (int k = 0; k < kElements; ++k) values[k] = in[(row + k * kRows) * kSide + column];
#pragma unroll
    for (int k = 0; k < kElements; ++k) tile[row + k * kRows][column] = values[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kElements; ++k) {
        out[(row + k * kRows) * kSide + column] = tile[column][row + k * kRows];
    }
}
