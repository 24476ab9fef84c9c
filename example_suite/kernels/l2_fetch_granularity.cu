// How much the L2 fetches when 32 bytes are asked for.
// From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application" (memory reads).
//
// Particles read the record of the cell they are in: 32 bytes, a sector, out of a table that is many times larger than
// the L2.  What misses the L2 comes from DRAM, and the L2 may fetch the sector alone, or its neighbours with it: 64
// bytes by default, the pair of sectors.
//
//   random      particles in any order.  The neighbour is of no use before it is evicted: half of what DRAM delivers
//               is thrown away, three quarters where 128 bytes are fetched for 32.
//   Z-order     the same particles sorted by cell, the cells numbered along a Z-order curve.  The neighbour is asked
//               for next: what was fetched too much was fetched ahead.
//
// Two things say how much: a limit of the device, cudaLimitMaxL2FetchGranularity (32, 64 or 128; the driver may take it
// as a hint), and the load itself.  gather<128> asks for the whole line that its sector lies in, gather<0> for nothing.
//
// On an H200 the limit is honoured: the sorted gather is fastest with 32 bytes, and slower with each doubling, as
// neighbouring warps ask for the neighbouring sectors anyway.
//
// In the machine code: LDG.E.LTC128B.128 in gather<128>, LDG.E.128 in gather<0>.  The order is in the data.
//
// Two lanes share a particle, 16 bytes each: 16 sectors per request, and every byte of them used.

constexpr int kBlock = 256;
constexpr int kLanes = 2;  // of a particle
constexpr int kEach = 4;   // particles of a pair of lanes: independent of each other, so that more is in flight
constexpr unsigned kAllLanes = 0xffffffffu;

template <int Prefetch>
__device__ __forceinline__ float4 load(const float4* from)
{
    static_assert(Prefetch == 0 || Prefetch == 128, "nothing, or the whole line");
    if constexpr (Prefetch == 0) return *from;
    float4 value;
    asm("ld.global.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
        : "l"(from));
    return value;
}

// out[p] is the sum of the eight floats in the record of particle p's cell.
template <int Prefetch>
__global__ void __launch_bounds__(kBlock) gather(float* out, const float4* records, const int* cell_of, int particles)
{
    constexpr int kPairs = kBlock / kLanes;
    const int half = threadIdx.x % kLanes;
    const int first = blockIdx.x * (kPairs * kEach) + threadIdx.x / kLanes;
    long long place[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int particle = first + k * kPairs;
        const int cell = particle < particles ? cell_of[particle] : 0;
        place[k] = static_cast<long long>(cell) * kLanes + half;
    }
    float4 part[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) part[k] = load<Prefetch>(records + place[k]);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        float sum = (part[k].x + part[k].y) + (part[k].z + part[k].w);
        sum += __shfl_xor_sync(kAllLanes, sum, 1);
        const int particle = first + k * kPairs;
        if (half == 0 && particle < particles) out[particle] = sum;
    }
}
