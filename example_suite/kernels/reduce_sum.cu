// Adding up an array: barriers, warp shuffles, and enough work per thread.
// From the "Optimization" chapter of a CUDA course.
//
// Every block of 256 threads leaves one partial sum; what adds up the partial sums is another launch, or the
// caller.
//
//   reduce_tree         halves the number of threads that add, eight times, with a barrier after each step.
//   reduce_tree_shfl    the same down to 32 values; a warp adds those by exchanging registers, without barriers.
//   reduce_shfl         every warp adds its own 32 values by shuffles, and then the eight sums of the warps.
//   reduce_grid_stride  as before, but a thread first adds up many float4: the only one with enough loads in
//                       flight to keep the memory busy.
//
// In the machine code: BAR 9 times, 4 times, once; SHFL takes their place.  The last one loads 16 bytes at a time.

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ float load_or_zero(const float* in, long long i, long long n)
{
    return i < n ? in[i] : 0.0f;
}

__device__ __forceinline__ long long global_index()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Lane 0 returns the sum of the values of the warp's first `Lanes` lanes; the other lanes return parts of it.
template <int Lanes = kWarp>
__device__ __forceinline__ float sum_of_warp(float value)
{
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
        value += __shfl_down_sync(kAllLanes, value, distance);
    }
    return value;
}

// Thread 0 returns the sum of the block.  All warps add the warps' sums, though one would do: shuffles inside a
// branch cost more than three idle ones, because the compiler must first gather the lanes.
__device__ __forceinline__ float sum_of_block(float value)
{
    constexpr int kWarps = kBlock / kWarp;
    __shared__ float sums[kWarps];
    const int lane = threadIdx.x % kWarp;
    value = sum_of_warp(value);
    if (lane == 0) sums[threadIdx.x / kWarp] = value;
    __syncthreads();
    return sum_of_warp<kWarps>(sums[lane % kWarps]);
}

extern "C" __global__ void reduce_tree(const float* in, float* partial, long long n)
{
    __shared__ float values[kBlock];
    const int thread = threadIdx.x;
    values[thread] = load_or_zero(in, global_index(), n);
    __syncthreads();
#pragma unroll
    for (int half = kBlock / 2; half > 0; half /= 2) {
        if (thread < half) values[thread] += values[thread + half];
        __syncthreads();
    }
    if (thread == 0) partial[blockIdx.x] = values[0];
}

extern "C" __global__ void reduce_tree_shfl(const float* in, float* partial, long long n)
{
    __shared__ float values[kBlock];
    const int thread = threadIdx.x;
    values[thread] = load_or_zero(in, global_index(), n);
    __syncthreads();
#pragma unroll
    for (int half = kBlock / 2; half >= kWarp; half /= 2) {
        if (thread < half) values[thread] += values[thread + half];
        __syncthreads();
    }
    if (thread >= kWarp) return;
    const float sum = sum_of_warp(values[thread]);
    if (thread == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void reduce_shfl(const float* in, float* partial, long long n)
{
    const float sum = sum_of_block(load_or_zero(in, global_index(), n));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__device__ __forceinline__ float sum_of_quad(float4 quad)
{
    return (quad.x + quad.y) + (quad.z + quad.w);
}

// `in` must be aligned to 16 bytes.  The last n % 4 elements are added by the first threads of the grid.
extern "C" __global__ void reduce_grid_stride(const float* in, float* partial, long long n)
{
    const float4* quads = reinterpret_cast<const float4*>(in);
    const long long quad_count = n / 4;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    float sum = 0.0f;
    long long i = global_index();
#pragma unroll 1
    for (; i + 3 * stride < quad_count; i += 4 * stride) {  // four loads in flight before the first is used
        const float4 first = quads[i];
        const float4 second = quads[i + stride];
        const float4 third = quads[i + 2 * stride];
        const float4 fourth = quads[i + 3 * stride];
        sum += (sum_of_quad(first) + sum_of_quad(second)) + (sum_of_quad(third) + sum_of_quad(fourth));
    }
#pragma unroll 1
    for (; i < quad_count; i += stride) sum += sum_of_quad(quads[i]);
    const long long rest = 4 * quad_count + global_index();
    if (rest < n) sum += in[rest];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
