// Adding up in global memory, or in a register.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 1).
//
// Ten times over, every interior element of A gains B[i-1] + B[i] + B[i+1].
//
//   accumulate_naive     each addition goes to A[i] itself: 31 loads and 30 stores per thread.
//   accumulate_register  adds up in a register and touches A[i] once: 4 loads and 1 store.
//   accumulate_restrict  the naive loop, but with __restrict__: the compiler may now assume that A and B do
//                        not overlap, and turns it into the register version by itself.
//
// accumulate_restrict is a control: its source is the naive one, and its time the register version's.
//
// In the machine code: count the STG.  Without __restrict__ the compiler must write A[i] after every addition,
// because B[i+1] could be the same address.  So the naive version takes plain pointers on purpose; a
// __restrict__ put there by habit would leave nothing to see.

constexpr int kRepeats = 10;

// Index of the interior element that this thread owns; the grid covers n - 2 of them.
__device__ __forceinline__ long long interior_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x + 1;
}

extern "C" __global__ void accumulate_naive(float* A, float* B, long long n)
{
    const long long i = interior_index();
    if (i >= n - 1) return;
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        A[i] += B[i - 1];
        A[i] += B[i];
        A[i] += B[i + 1];
    }
}

extern "C" __global__ void accumulate_register(float* A, float* B, long long n)
{
    const long long i = interior_index();
    if (i >= n - 1) return;
    float sum = 0.0f;
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        sum += B[i - 1];
        sum += B[i];
        sum += B[i + 1];
    }
    A[i] += sum;
}

extern "C" __global__ void accumulate_restrict(float* __restrict__ A, float* __restrict__ B, long long n)
{
    const long long i = interior_index();
    if (i >= n - 1) return;
#pragma unroll
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        A[i] += B[i - 1];
        A[i] += B[i];
        A[i] += B[i + 1];
    }
}
