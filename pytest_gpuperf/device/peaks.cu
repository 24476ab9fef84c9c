// Kernels that keep one part of a GPU busy and nothing else.  VECTORS, CHAINS and STEPS come as options.

#ifndef NUMBER
#define NUMBER float
#endif

// Reads `vectors` of 16 bytes, a power of two, over and over: past the L1, or with IN_SHARED out of shared memory.
extern "C" __global__ void gpuperf_read(const uint4* __restrict__ from, unsigned* out, unsigned vectors, unsigned steps)
{
#ifdef IN_SHARED
    extern __shared__ uint4 source[];
    for (unsigned i = threadIdx.x; i < vectors; i += blockDim.x) source[i] = from[i];
    __syncthreads();
    const unsigned stride = blockDim.x;
    unsigned at = threadIdx.x;
#define LOAD(index) source[index]
#else
    const unsigned stride = gridDim.x * blockDim.x;
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
#define LOAD(index) __ldcg(from + (index))
#endif
    unsigned sum = 0;
    for (unsigned step = 0; step < steps; ++step) {
        uint4 kept[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v, at += stride) kept[v] = LOAD(at & (vectors - 1));
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum ^= kept[v].x ^ kept[v].y ^ kept[v].z ^ kept[v].w;
    }
    if (sum == 0x9e3779b9) out[0] = sum;  // hardly ever: keeps the loads from being optimised away
}

// Chains of multiply-adds that do not depend on each other, enough of them to hide the latency of one.
extern "C" __global__ void gpuperf_multiply_add(NUMBER* out, NUMBER a, NUMBER b)
{
    NUMBER x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x + c;
#pragma unroll 32
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * a + b;
    }
    NUMBER sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c];
    if (sum == (NUMBER)1.5f) out[0] = sum;  // hardly ever
}
