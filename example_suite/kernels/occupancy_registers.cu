// Registers per thread: what they cost in occupancy, and what it costs to take them away.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (occupancy limiters).
//
// An SM has 65 536 registers and hands them to warps in lots of 8 per thread: 63 per thread are 64, a warp takes 2048,
// 32 warps take all.  That is half of the 64 warps that an A100 or H200 can hold.
//
// Every thread folds Length values forwards into s, then backwards using s.  The second pass needs the values of the
// first, so all of them stay in registers: the compiler takes 143 for 128 floats, and a double takes two.
//
//   two_passes<float, Length>   what the compiler likes.  Compile it with -maxrregcount=64 (or 96, 48, 32), and the
//                               values that do not fit go to local memory and come back.
//   two_passes_bounded          __launch_bounds__(256, 8) asks for 8 blocks of 256 threads on an SM: 32 registers.
//                               On sm_120 an SM holds 6 such blocks at most, and the compiler ignores the wish.
//   two_passes_capped           __maxnreg__(64) says the number itself.
//
// In the machine code: registers, the stack frame, STL and LDL.  Local memory is not local to the SM: it lives in
// device memory, behind the same caches as everything else.  A few spilled values are a fair price for more warps; all
// of them are not.

template <typename T, int Length>
__device__ __forceinline__ void fold(const T* in, T* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T values[Length];
#pragma unroll
    for (int k = 0; k < Length; ++k) values[k] = in[static_cast<long long>(k) * n + i];
    T s = 0;
#pragma unroll
    for (int k = 0; k < Length; ++k) s = s * static_cast<T>(0.5) + values[k];
    T r = s;
#pragma unroll
    for (int k = Length - 1; k >= 0; --k) r = r * static_cast<T>(0.25) + values[k] * s;
    out[i] = r;
}

template <typename T, int Length>
__global__ void two_passes(const T* in, T* out, int n)
{
    fold<T, Length>(in, out, n);
}

template <int Length>
__global__ void __launch_bounds__(256, 8) two_passes_bounded(const float* in, float* out, int n)
{
    fold<float, Length>(in, out, n);
}

template <int Length>
__global__ void __maxnreg__(64) two_passes_capped(const float* in, float* out, int n)
{
    fold<float, Length>(in, out, n);
}
