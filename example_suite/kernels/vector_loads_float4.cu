// Wider loads: the same bytes with a quarter of the instructions, and four times the bytes in flight per thread.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (vectorized instructions) and
// R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (remedy for the LG throttle stall).
//
// copy, scale and axpy for float, float2 and float4, in a grid-stride loop.  An element of the wide types must be
// aligned to its size.  With few warps, or with one small load per thread and round, too few bytes are on their way to
// keep the memory busy; float4 has four times as many.
//
// horner_from_shared evaluates a polynomial whose coefficients are in shared memory: one load per multiply-add with
// float, one per four with float4.  Here instructions are the limit, not the memory.
//
// horner_from_global has the coefficients in global memory: every lane loads the same one, and so many loads are asked
// for that the queue of memory instructions is full (the LG throttle stall).
//
// In the machine code: LDG.E, LDG.E.64 and LDG.E.128; LDS and LDS.128.  The loops that copy are not unrolled, because
// the compiler would put several loads in flight by itself.

__device__ __forceinline__ float add(float x, float y)
{
    return x + y;
}

__device__ __forceinline__ float2 add(float2 x, float2 y)
{
    return make_float2(x.x + y.x, x.y + y.y);
}

__device__ __forceinline__ float4 add(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__device__ __forceinline__ float times(float factor, float x)
{
    return factor * x;
}

__device__ __forceinline__ float2 times(float factor, float2 x)
{
    return make_float2(factor * x.x, factor * x.y);
}

__device__ __forceinline__ float4 times(float factor, float4 x)
{
    return make_float4(factor * x.x, factor * x.y, factor * x.z, factor * x.w);
}

__device__ __forceinline__ int global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// How many elements of type T so many floats are; a whole number, here and below.
template <typename T>
__device__ __forceinline__ int elements(int floats)
{
    return floats / static_cast<int>(sizeof(T) / sizeof(float));
}

template <typename T>
__global__ void copy(const T* x, T* out, int floats)
{
    const int n = elements<T>(floats);
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = global_index(); i < n; i += stride) out[i] = x[i];
}

template <typename T>
__global__ void scale(const T* x, T* out, float factor, int floats)
{
    const int n = elements<T>(floats);
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = global_index(); i < n; i += stride) out[i] = times(factor, x[i]);
}

template <typename T>
__global__ void axpy(const T* x, const T* y, T* out, float factor, int floats)
{
    const int n = elements<T>(floats);
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = global_index(); i < n; i += stride) out[i] = add(times(factor, x[i]), y[i]);
}

constexpr int kCoefficients = 1024;

__device__ __forceinline__ float horner_step(float value, float x, float coefficient)
{
    return value * x + coefficient;
}

__device__ __forceinline__ float horner_step(float value, float x, float4 coefficients)
{
    value = value * x + coefficients.x;
    value = value * x + coefficients.y;
    value = value * x + coefficients.z;
    return value * x + coefficients.w;
}

// The coefficients come with that of the highest power first.
template <typename T>
__global__ void horner_from_shared(const float* x, const T* coefficients, float* out, int n)
{
    constexpr int kLoads = kCoefficients * sizeof(float) / sizeof(T);
    __shared__ T staged[kLoads];
    for (int k = threadIdx.x; k < kLoads; k += blockDim.x) staged[k] = coefficients[k];
    __syncthreads();
    const int i = global_index();
    if (i >= n) return;
    const float own = x[i];
    float value = 0.0f;
#pragma unroll 1
    for (int k = 0; k < kLoads; ++k) value = horner_step(value, own, staged[k]);
    out[i] = value;
}

template <typename T>
__global__ void horner_from_global(const float* x, const T* coefficients, float* out, int n)
{
    constexpr int kLoads = kCoefficients * sizeof(float) / sizeof(T);
    const int i = global_index();
    if (i >= n) return;
    const float own = x[i];
    float value = 0.0f;
#pragma unroll 16
    for (int k = 0; k < kLoads; ++k) value = horner_step(value, own, coefficients[k]);
    out[i] = value;
}
