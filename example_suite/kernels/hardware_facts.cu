// What the documents say about the hardware, measured.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", the GTC 2023 talk "What the
// profiler is telling you: optimizing your CUDA application" and R. Bourgeois, "Five basic performance advice for
// porting kernels to the GPU".
//
//   steps_...            a chain of dependent instructions in each thread, between two readings of the SM's clock.  One
//                        warp shows an instruction's latency; a full block shows how many lanes an SM has for it.
//   link_lines,          a list whose every element is in a cache line of its own, in an order that no prefetcher
//   follow_lines         guesses, and one thread that follows it: the latency of a load, from the cache that the list
//                        fits into.
//   occupy_places        warps that stay for a while and say where: how many an SM holds at the same time.
//   exchange_in_cluster  two blocks that wait for each other and read each other's shared memory: they must both be
//                        running.  (Hopper and later.)
//
// In the machine code: the chains are FADD, DADD, DFMA, IMAD and MUFU with the same register as source and target.

constexpr int kWarp = 32;

// `count` steps from x on, a multiple of `Unrolled`; begin and end get a reading per warp.  For one block.
// The loop itself takes three instructions: next to nothing with 256 steps, and none of the units of the slower kinds.
template <int Unrolled = 32, typename Out, typename T, typename Step>
__device__ __forceinline__ void timed_steps(Out* out, long long* begin, long long* end, int count, T x, Step step)
{
    __syncthreads();
    const long long first = clock64();
#pragma unroll 1
    for (int done = 0; done < count; done += Unrolled) {
#pragma unroll
        for (int each = 0; each < Unrolled; ++each) x = step(x);
    }
    const long long last = clock64();
    out[threadIdx.x] = static_cast<Out>(x);
    if (threadIdx.x % kWarp == 0) {
        begin[threadIdx.x / kWarp] = first;
        end[threadIdx.x / kWarp] = last;
    }
}

extern "C" __global__ void steps_fp32(float* out, long long* begin, long long* end, int count)
{
    timed_steps<256>(out, begin, end, count, 0.0f, [](float x) { return x + 1.1f; });
}

struct FloatAndBits {
    float sum;
    unsigned bits;
    __device__ explicit operator unsigned() const { return __float_as_uint(sum) ^ bits; }
};

// Six instructions a step, of which the units could take more at once than schedulers issue: four additions, for which
// there are 128 lanes, and two on integers, for which there are 64.
extern "C" __global__ void steps_mixed(
    unsigned* out, long long* begin, long long* end, int count, unsigned term, unsigned mask)
{
    timed_steps(out, begin, end, count, FloatAndBits{0.0f, threadIdx.x}, [=](FloatAndBits x) {
        x.sum = (((x.sum + 1.1f) + 1.1f) + 1.1f) + 1.1f;
        x.bits = (x.bits + term) ^ mask;
        return x;
    });
}

extern "C" __global__ void steps_fp64(double* out, long long* begin, long long* end, int count)
{
    timed_steps(out, begin, end, count, 0.0, [](double x) { return x + 1.1; });
}

extern "C" __global__ void steps_int32(
    unsigned* out, long long* begin, long long* end, int count, unsigned factor, unsigned term)
{
    timed_steps(out, begin, end, count, 1u, [=](unsigned x) { return x * factor + term; });
}

// Inverse square roots: of 4 at first, then ever closer to 1.
extern "C" __global__ void steps_special(float* out, long long* begin, long long* end, int count)
{
    timed_steps(out, begin, end, count, 4.0f, [](float x) {
        asm("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
        return x;
    });
}

extern "C" __global__ void steps_fma_fp64(
    double* out, long long* begin, long long* end, int count, double factor, double term)
{
    timed_steps(out, begin, end, count, 1.0, [=](double x) { return fma(x, factor, term); });
}

struct Line {
    Line* next;
    char rest[120];
};

// Line i is followed by line (i * factor + term) mod count.  With count a power of two, factor one more than a multiple
// of 4 and term odd, that is one round through all lines.
extern "C" __global__ void link_lines(Line* lines, unsigned count, unsigned factor, unsigned term)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) lines[i].next = lines + ((i * factor + term) & (count - 1));
}

__device__ __forceinline__ const Line* follow(const Line* line, int steps)
{
#pragma unroll 16
    for (int step = 0; step < steps; ++step) line = line->next;
    return line;
}

// One thread: follows `warm_up` lines, then `steps` more by the clock.
extern "C" __global__ void follow_lines(const Line* lines, int warm_up, int steps, unsigned* reached, long long* cycles)
{
    const Line* line = follow(lines, warm_up);
    const unsigned before = line - lines;
    if (before == ~0u) return;  // never: the warm-up has ended before the clock is read
    const long long first = clock64();
    line = follow(line, steps);
    *reached = line - lines;
    *cycles = clock64() - first;
}

// Every warp stays for `cycles` and says where it was: which SM, and which of the SM's places for warps.
extern "C" __global__ void occupy_places(int* sm, int* place, int cycles)
{
    const long long first = clock64();
    while (clock64() - first < cycles) {
    }
    if (threadIdx.x % kWarp == 0) {
        const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm[warp]));
        asm volatile("mov.u32 %0, %%warpid;" : "=r"(place[warp]));
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ void wait_for_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Blocks of one warp, in clusters of two: each writes what the other has read.
extern "C" __global__ void __cluster_dims__(2, 1, 1) exchange_in_cluster(int* out, const int* in)
{
    __shared__ int values[kWarp];
    const int i = blockIdx.x * kWarp + threadIdx.x;
    values[threadIdx.x] = in[i];
    wait_for_cluster();
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(values + threadIdx.x));
    const unsigned other_block = 1 - blockIdx.x % 2;
    unsigned others;
    int value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(others) : "r"(own), "r"(other_block));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(others) : "memory");
    out[i] = value;
    wait_for_cluster();  // nobody leaves while its shared memory is being read
}

#endif
