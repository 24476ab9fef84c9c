// A branch inside a warp runs both of its sides.
// From the "Optimization" chapter of a CUDA course (warp divergence).
//
// Half of the threads put their element through path A, the other half through path B; the two cost the same.
//
//   branch_even_odd   even threads take A, odd threads B: every warp runs both paths, with half of its threads
//                     switched off in each.
//   branch_by_warp    even warps take A, odd warps B: every warp runs one path.  (The chapter's condition,
//                     threadIdx.x / 32 == 0, would send the first warp alone through A; that compares unequal work.)
//
//   ..._short         the control: eight steps instead of 512.  The memory is the limit then, and a warp that runs both
//                     paths has the time for it.
//
// In the machine code: the kernels have the two loops of FFMA, one after the other, and a branch around each.  The
// code does not tell which warps split; the condition does.  The paths' factors come from memory, so that the compiler
// can neither fold the paths into one nor replace the branch by a selection of constants.

constexpr int kIterations = 512;
constexpr int kFew = 8;

struct Paths {
    float factor_a, term_a, factor_b, term_b;
};

template <int Iterations>
__device__ __forceinline__ float path_a(float x, const Paths& paths)
{
#pragma unroll 64
    for (int i = 0; i < Iterations; ++i) x = fmaf(x, paths.factor_a, paths.term_a);
    return x;
}

template <int Iterations>
__device__ __forceinline__ float path_b(float x, const Paths& paths)
{
#pragma unroll 64
    for (int i = 0; i < Iterations; ++i) x = fmaf(x, paths.factor_b, paths.term_b);
    return x;
}

template <int Iterations>
__device__ __forceinline__ void run_path(bool takes_a, const float* in, float* out, const Paths* paths, long long n)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Paths own = *paths;
    float x = in[i];
    if (takes_a) {
        x = path_a<Iterations>(x, own);
    } else {
        x = path_b<Iterations>(x, own);
    }
    out[i] = x;
}

extern "C" __global__ void branch_even_odd(const float* in, float* out, const Paths* paths, long long n)
{
    run_path<kIterations>(threadIdx.x % 2 == 0, in, out, paths, n);
}

extern "C" __global__ void branch_by_warp(const float* in, float* out, const Paths* paths, long long n)
{
    run_path<kIterations>(threadIdx.x / 32 % 2 == 0, in, out, paths, n);
}

extern "C" __global__ void branch_even_odd_short(const float* in, float* out, const Paths* paths, long long n)
{
    run_path<kFew>(threadIdx.x % 2 == 0, in, out, paths, n);
}

extern "C" __global__ void branch_by_warp_short(const float* in, float* out, const Paths* paths, long long n)
{
    run_path<kFew>(threadIdx.x / 32 % 2 == 0, in, out, paths, n);
}
