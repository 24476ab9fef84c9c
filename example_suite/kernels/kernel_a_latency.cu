// A chain of dependent additions: latency, and the two ways to hide it.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (latency-bound kernel) and
// the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (scheduler statistics).
//
// Each thread adds 3.14 to its sum `count` times.  An addition needs the sum of the one before, so a warp issues one
// and waits for as many cycles as an addition takes.  The scheduler is idle meanwhile, unless it has
//
//   other warps          (thread-level parallelism): launch more of them.  It must be more warps *per scheduler*: the
//                        talk's <<<3, 32>>> puts its three warps on three SMs, where each is as lonely as before;
//                        <<<1, 384>>> gives each of an SM's four schedulers three.
//   other instructions   (instruction-level parallelism): chain_f32x2 has two sums that do not need each other.
//   shorter instructions (chain_f32): a float addition takes half the cycles of a double one.
//
// With 16 warps on each scheduler the latency is hidden.  Then the pipe sets the pace, and two sums per thread take
// twice as long as one.
//
// In the machine code: chain_f64 has a hundred DADD in a row, each with the same register as source and target, so
// that the loop around them weighs nothing.  chain_f64_rolled is the talk's listing without the pragma: the compiler
// unrolls by four, and the loop's own instructions issue in the shadow of the additions.  A counter of issued
// instructions then looks better than the chain is.

template <typename T>
__device__ __forceinline__ void store_own(T* out, T value)
{
    out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void chain_f64_rolled(double* out, int count)
{
    double sum = 0.0;
    for (int k = 0; k < count; ++k) sum += 3.14;
    store_own(out, sum);
}

extern "C" __global__ void chain_f64(double* out, int count)
{
    double sum = 0.0;
#pragma unroll 100
    for (int k = 0; k < count; ++k) sum += 3.14;
    store_own(out, sum);
}

extern "C" __global__ void chain_f32(float* out, int count)
{
    float sum = 0.0f;
#pragma unroll 100
    for (int k = 0; k < count; ++k) sum += 3.14f;
    store_own(out, sum);
}

// The second chain starts elsewhere: two equal chains would be merged into one.
extern "C" __global__ void chain_f32x2(float2* out, int count)
{
    float2 sum = make_float2(0.0f, 1.0f);
#pragma unroll 100
    for (int k = 0; k < count; ++k) {
        sum.x += 3.14f;
        sum.y += 3.14f;
    }
    store_own(out, sum);
}
