// A branch that splits warps in half, or takes whole warps.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 8).
//
// The sum over i of either x or cosh(x) - sinh(x) at x = i / n.  Half of the elements take the cheap path, the other
// half the expensive one; which, is the only difference:
//
//   sum_by_half_warp  i % 32 < 16: every warp walks both paths, each with half of its lanes.
//   sum_by_warp       i % 64 < 32: every warp walks one path, with all of its lanes.
//   sum_by_selection  i % 32 < 16 again, but nobody branches: every lane computes both terms and takes one.  A control:
//                     if a split warp costs both paths, this costs as much.
//
// The two add up different functions of i, yet both converge to n times the same integral, half of that of x and half
// of that of exp(-x).  Such a change is allowed only where the elements' order is free.
//
// Every warp owns a stretch of the elements and takes 32 of them at a time, so that in sum_by_warp its turns alternate
// between the paths.  (If the even warps took one path for good, they would share their schedulers with warps of the
// same path: a block's warps go to the four schedulers of an SM by turns.)
//
// In the machine code: both have the same instructions, one FADD for the cheap path, some twenty for the other.  What
// differs is how many lanes they run for.

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct HalfWarps {
    static __device__ __forceinline__ bool is_cheap(unsigned i) { return i % 32 < 16; }
};

struct WholeWarps {
    static __device__ __forceinline__ bool is_cheap(unsigned i) { return i % 64 < 32; }
};

// Each warp leaves one partial sum of `per_warp` elements, a multiple of 32.  n is below 2^31, so that no index
// overflows; partial sums are double, those of a lane float.
template <typename Split>
__device__ __forceinline__ void sum_stretch(double* partial, unsigned n, unsigned per_warp)
{
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
    const unsigned lane = threadIdx.x % kWarp;
    const float step = 1.0f / static_cast<float>(n);
    const unsigned first = warp * per_warp + lane;
    const unsigned end = min(n, (warp + 1) * per_warp);
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned i = first; i < end; i += kWarp) {
        const float x = static_cast<float>(i) * step;
        if (Split::is_cheap(i)) {
            sum += x;
        } else {
            sum += coshf(x) - sinhf(x);
        }
    }
    double total = sum;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        total += __shfl_down_sync(kAllLanes, total, distance);
    }
    if (lane == 0) partial[warp] = total;
}

extern "C" __global__ void sum_by_half_warp(double* partial, unsigned n, unsigned per_warp)
{
    sum_stretch<HalfWarps>(partial, n, per_warp);
}

extern "C" __global__ void sum_by_warp(double* partial, unsigned n, unsigned per_warp)
{
    sum_stretch<WholeWarps>(partial, n, per_warp);
}

extern "C" __global__ void sum_by_selection(double* partial, unsigned n, unsigned per_warp)
{
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
    const unsigned lane = threadIdx.x % kWarp;
    const float step = 1.0f / static_cast<float>(n);
    const unsigned first = warp * per_warp + lane;
    const unsigned end = min(n, (warp + 1) * per_warp);
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned i = first; i < end; i += kWarp) {
        const float x = static_cast<float>(i) * step;
        const float costly = coshf(x) - sinhf(x);
        // By arithmetic: a conditional operator would be turned back into a branch around `costly`.
        const float is_cheap = HalfWarps::is_cheap(i) ? 1.0f : 0.0f;
        sum += is_cheap * x + (1.0f - is_cheap) * costly;
    }
    double total = sum;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        total += __shfl_down_sync(kAllLanes, total, distance);
    }
    if (lane == 0) partial[warp] = total;
}
