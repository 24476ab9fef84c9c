// How many warps hide a latency.
// From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (latency hiding), and the GTC 2023
// talk "What the profiler is telling you: optimizing your CUDA application" (latency).
//
// c = a * b is two loads and a multiplication that waits for them.  While it waits, the scheduler issues what other
// warps have ready.  A latency of 18 cycles and two instructions per warp that need not wait: nine warps, and no cycle
// is lost.  So it goes for any latency, by Little's law: instructions in flight = latency x instructions per cycle.
// They may come from many warps or from one with much to do; the scheduler does not care.
//
//   multiply_elements       one element at a time, two loads in flight per thread: bandwidth grows with the warps.
//   multiply_four           four elements at a time, eight loads in flight per thread.  A control: with a quarter of
//                           the warps it has as many loads on their way.
//   add_chains<Chains>      the same with the latency of an FADD, 4 cycles on Hopper: 4 warps with a chain of dependent
//                           additions each, or one warp with 4 chains, keep a scheduler busy.
//
// In the machine code: multiply_elements has two LDG, one FMUL and one STG in its loop, which is not unrolled on
// purpose.  Unrolled, it would have more loads in flight, and need fewer warps for the same bandwidth.

extern "C" __global__ void multiply_elements(
    float* __restrict__ c, const float* __restrict__ a, const float* __restrict__ b, long long n)
{
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        c[i] = a[i] * b[i];
    }
}

extern "C" __global__ void multiply_four(
    float* __restrict__ c, const float* __restrict__ a, const float* __restrict__ b, long long n)
{
    constexpr int kElements = 4;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += kElements * stride) {
        float left[kElements];
        float right[kElements];
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
            const long long each = i + e * stride;
            left[e] = each < n ? a[each] : 0.0f;
            right[e] = each < n ? b[each] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
            const long long each = i + e * stride;
            if (each < n) c[each] = left[e] * right[e];
        }
    }
}

// Additions of 1.1 to each of `Chains` sums, between two readings of the SM's clock, one pair per warp: for one block,
// on one SM.  `count` is a multiple of 32; sum k starts at k.  (An FFMA that reads three registers would not
// do: an H200 issues one in no more than two of three cycles.)
template <int Chains>
__global__ void add_chains(float* out, long long* begin, long long* end, int count)
{
    constexpr int kUnrolled = 32;
    float x[Chains];
#pragma unroll
    for (int k = 0; k < Chains; ++k) x[k] = k;
    __syncthreads();
    const long long first = clock64();
#pragma unroll 1
    for (int step = 0; step < count; step += kUnrolled) {
#pragma unroll
        for (int each = 0; each < kUnrolled; ++each) {
#pragma unroll
            for (int k = 0; k < Chains; ++k) x[k] += 1.1f;
        }
    }
    const long long last = clock64();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < Chains; ++k) sum += x[k];
    out[threadIdx.x] = sum;
    if (threadIdx.x % 32 == 0) {
        begin[threadIdx.x / 32] = first;
        end[threadIdx.x / 32] = last;
    }
}
