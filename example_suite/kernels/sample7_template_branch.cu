// A branch that is never taken still costs registers.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 7).
//
// A five-point blur of a square image, with an expensive option that nobody asks for.  The image is
// column-major, (i, j) is at i + j * side; each thread owns one interior point.
//
//   blur_at_run_time   `if (expensive)` on a kernel argument.  The compiler must be ready for both, so every
//                      thread gets the registers of the expensive path, and few threads fit on an SM.
//   blur_at_compile_time<false, ...>  the option is a template argument: the code and its registers are gone.
//   blur_at_compile_time<true, ...>   the same with the option on.
//
// blur_at_run_time<8> is a control: the branch is there, what is behind it needs 30 registers, and it costs nothing.
//
// The expensive option reads Length values, folds them forwards into s, then backwards using s.  The second pass
// needs values of the first, so all of them stay in registers: 168 for Length = 128, against 18 without.
//
// The article does not show its option, an array of 128 floats.  Without a hog the rule is the same, and smaller:
//
//   blur_or_sums         two sums over 128 values, whose loops the compiler fuses.  Never run, they take 32 registers
//                        of each thread, against 18, but no occupancy.
//   blur_loads_first     the other way that comes to mind, and the article found no success with: the operations in
//                        another order, first five loads, then the additions.  The machine code is the same.
//
// On an H200 the version without the option is limited by something else: its blocks of 128 threads, the article's, are
// launched no faster than 1.66 per nanosecond.
//
// In the machine code: registers per thread, and with them the occupancy.  There are no spills, unless somebody
// limits the registers (-maxrregcount=32): then the values go to local memory and come back.

template <int Length>
__device__ __forceinline__ float expensive_option(const float* B, int i, int j, int side)
{
    const float centre = B[i + j * side];
    float values[Length];
#pragma unroll
    for (int k = 0; k < Length; ++k) values[k] = centre + B[(i + j + k) % side + j * side];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < Length; ++k) s = s * 0.5f + values[k];
    float r = s;
#pragma unroll
    for (int k = Length - 1; k >= 0; --k) r = r * 0.25f + values[k] * s;
    return r;
}

__device__ __forceinline__ float blurred(const float* B, int i, int j, int side)
{
    constexpr float kFifth = 1.0f / 5.0f;
    const int centre = i + j * side;
    float sum = B[centre];
    sum += B[centre - 1];
    sum += B[centre + 1];
    sum += B[centre - side];
    sum += B[centre + side];
    return sum * kFifth;
}

// The interior has (side - 2)^2 points; int is enough up to side = 32768, whose square is 2^30.
template <int Length>
__global__ void blur_at_run_time(float* A, const float* B, int side, int expensive)
{
    const int inner = side - 2;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= inner * inner) return;
    const int i = 1 + point % inner;
    const int j = 1 + point / inner;
    float value = blurred(B, i, j, side);
    if (expensive) value += expensive_option<Length>(B, i, j, side);
    A[i + j * side] = value;
}

template <int Length>
__device__ __forceinline__ float two_sums(const float* B, int i, int j, int side)
{
    float values[Length];
#pragma unroll
    for (int k = 0; k < Length; ++k) values[k] = B[(i + j + k) % side + j * side];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < Length; ++k) sum += values[k];
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < Length; ++k) squares += values[k] * values[k];
    return sum * squares;
}

template <int Length>
__global__ void blur_or_sums(float* A, const float* B, int side, int expensive)
{
    const int inner = side - 2;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= inner * inner) return;
    const int i = 1 + point % inner;
    const int j = 1 + point / inner;
    float value = blurred(B, i, j, side);
    if (expensive) value += two_sums<Length>(B, i, j, side);
    A[i + j * side] = value;
}

extern "C" __global__ void blur_loads_first(float* A, const float* B, int side)
{
    const int inner = side - 2;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= inner * inner) return;
    const int i = 1 + point % inner;
    const int j = 1 + point / inner;
    const int centre = i + j * side;
    const float here = B[centre];
    const float above = B[centre - 1];
    const float below = B[centre + 1];
    const float left = B[centre - side];
    const float right = B[centre + side];
    A[i + j * side] = ((((here + above) + below) + left) + right) * (1.0f / 5.0f);
}

template <bool Expensive, int Length>
__global__ void blur_at_compile_time(float* A, const float* B, int side)
{
    const int inner = side - 2;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= inner * inner) return;
    const int i = 1 + point % inner;
    const int j = 1 + point / inner;
    float value = blurred(B, i, j, side);
    if constexpr (Expensive) value += expensive_option<Length>(B, i, j, side);
    A[i + j * side] = value;
}
