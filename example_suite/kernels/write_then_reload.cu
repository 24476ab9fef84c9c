// Values written in one pass and read again in the next: where they wait.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (coalescing, the note on a
// non-coalesced write that the same thread loads again).
//
// Every thread has a column of `count` numbers.  The first pass squares them and finds the largest square, the second
// says how far below it each one is.  `count` is known at run time only, so no registers hold the squares in between.
//
//   scratch_rows      squares wait in global memory, a row for each thread: the lanes of a warp write `count` floats
//                     apart, 32 sectors for 128 bytes, and read them the same way.
//   scratch_columns   the same scratch, neighbours next to each other: 4 sectors for 128 bytes.
//   in_shared         squares wait in shared memory and never leave the SM: no bytes that need not move.
//
// With one value per thread, rows and columns are the same addresses: then there is nothing to gain.
//
// In the machine code: the same loads and stores in scratch_rows and scratch_columns; what differs is the factor of the
// address.  STS and LDS take their place in in_shared.

__device__ __forceinline__ long long global_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// `in` and `out` are `count` rows of `threads` floats: coalesced in all variants.  `scratch` is where the thread keeps
// its first square; the next one is `pitch` floats further.
__device__ __forceinline__ void below_largest(float* __restrict__ out, const float* __restrict__ in,
                                              float* __restrict__ scratch, long long pitch, long long threads,
                                              int count)
{
    const long long thread = global_index();
    float largest = 0.0f;
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
        const float value = in[k * threads + thread];
        const float square = value * value;
        scratch[k * pitch] = square;
        largest = fmaxf(largest, square);
    }
#pragma unroll 4
    for (int k = 0; k < count; ++k) out[k * threads + thread] = largest - scratch[k * pitch];
}

extern "C" __global__ void scratch_rows(float* __restrict__ out, const float* __restrict__ in,
                                        float* __restrict__ scratch, long long threads, int count)
{
    const long long thread = global_index();
    if (thread < threads) below_largest(out, in, scratch + thread * count, 1, threads, count);
}

extern "C" __global__ void scratch_columns(float* __restrict__ out, const float* __restrict__ in,
                                           float* __restrict__ scratch, long long threads, int count)
{
    const long long thread = global_index();
    if (thread < threads) below_largest(out, in, scratch + thread, threads, threads, count);
}

// Needs count * blockDim.x floats of dynamic shared memory.  No barrier: a thread reads what it wrote itself.
extern "C" __global__ void in_shared(float* __restrict__ out, const float* __restrict__ in, float*,
                                     long long threads, int count)
{
    extern __shared__ float kept[];
    if (global_index() < threads) below_largest(out, in, kept + threadIdx.x, blockDim.x, threads, count);
}
