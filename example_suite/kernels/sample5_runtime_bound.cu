// A loop whose length the compiler knows, or not.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 5).
//
// Each thread puts three neighbouring elements into a small array and adds them up.
//
//   sum_runtime   the loop ends at a kernel argument.  The index into the array is then not known either, and because
//                 registers have no addresses, the array goes to the stack: local memory.
//   sum_constant  the loop ends at a constant: unrolled, every index is a literal, the array is three registers.
//   sum_guarded   the loop is unrolled to the most there can be, and each step asks whether it is below the kernel
//                 argument.  A control: the bound is as unknown as in sum_runtime, yet every index is a literal.
//
// In the machine code: STL, LDL and a stack frame of 16 bytes, against none.  (For sm_120 the compiler finds a way
// without a stack: it selects among three registers at every step, with nearly two hundred SEL and MOV in the loop,
// which it unrolls 16-fold.  The article's version reads an array that it never set, runs past the end of A and writes
// to what its neighbours still read; this one does not.)

constexpr int kMost = 3;

__device__ __forceinline__ long long global_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// `bound` is at most 3, and the last two elements have no sum: out has n - 2.
__device__ __forceinline__ void add_neighbours(float* out, const float* A, long long n, int bound)
{
    const long long i = global_index();
    if (i >= n - (kMost - 1)) return;
    float values[kMost] = {0.0f, 0.0f, 0.0f};
    for (int k = 0; k < bound; ++k) values[k] += A[i + k];
    out[i] = values[0] + values[1] + values[2];
}

extern "C" __global__ void sum_runtime(float* out, const float* A, long long n, int bound)
{
    add_neighbours(out, A, n, bound);
}

extern "C" __global__ void sum_constant(float* out, const float* A, long long n)
{
    add_neighbours(out, A, n, kMost);
}

extern "C" __global__ void sum_guarded(float* out, const float* A, long long n, int bound)
{
    const long long i = global_index();
    if (i >= n - (kMost - 1)) return;
    float values[kMost] = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
        if (k < bound) values[k] += A[i + k];
    }
    out[i] = values[0] + values[1] + values[2];
}
