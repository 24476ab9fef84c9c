// Tensor cores: a warp multiplies small matrices that are spread over its registers.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (tensor core summary).
//
// mma.sync.m16n8k8: D = A B + C with A 16 x 8 and B 8 x 8 in half precision, C and D 16 x 8 in single: 128 results of 8
// products each by one instruction of one warp.  Every lane holds its share of all four matrices in registers, and all
// 32 lanes must take part.  With g = lane / 4 and q = lane % 4, a lane has of
//
//   A   rows g and g + 8, columns 2q and 2q + 1           (m16n8k16: columns 2q + 8 and 2q + 9, too)
//   B   column g, rows 2q and 2q + 1                      (m16n8k16: rows 2q + 8 and 2q + 9, too)
//   C   rows g and g + 8, columns 2q and 2q + 1
//
//   tile_scalar   the same tile by ordinary multiply-adds.
//   tile_mma      by one mma.sync.
//   repeat_mma    as fast as it goes: eight independent accumulators per warp.
//   matmul_mma    a matrix product from such tiles: a block of 8 warps takes 128 x 128 results, staging strips of A and
//                 B in shared memory; each warp takes 64 x 32 results, 16 tiles.
//
// In the machine code: one HMMA.1688.F32 for an m16n8k8, HMMA.16816.F32 for an m16n8k16.  mma.sync runs on all GPUs
// since Turing; Hopper reaches its full rate with wgmma, Blackwell with tcgen05.  In earnest, use CUTLASS or cuBLAS.

// Two half-precision numbers, the first in the lower 16 bits.
using HalfPair = unsigned;

__device__ __forceinline__ void multiply_add(float (&d)[4], const HalfPair (&a)[2], const HalfPair (&b)[1])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

#if __CUDA_ARCH__ >= 800  // Turing has the smaller one alone
__device__ __forceinline__ void multiply_add(float (&d)[4], const HalfPair (&a)[4], const HalfPair (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

__device__ __forceinline__ float as_float(unsigned short half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

// A is row-major, and so are C and D; B is column-major: b[column][row].
template <int K>
__device__ __forceinline__ void load_fragments(const HalfPair* a, const HalfPair* b, HalfPair (&of_a)[K / 4],
                                               HalfPair (&of_b)[K / 8])
{
    const int g = threadIdx.x % 32 / 4;
    const int q = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < K / 8; ++k) {
        of_a[2 * k] = a[g * (K / 2) + 4 * k + q];
        of_a[2 * k + 1] = a[(g + 8) * (K / 2) + 4 * k + q];
        of_b[k] = b[g * (K / 2) + 4 * k + q];
    }
}

__device__ __forceinline__ void store_fragment(float* d, const float (&of_d)[4])
{
    const int g = threadIdx.x % 32 / 4;
    const int q = threadIdx.x % 4;
    d[g * 8 + 2 * q] = of_d[0];
    d[g * 8 + 2 * q + 1] = of_d[1];
    d[(g + 8) * 8 + 2 * q] = of_d[2];
    d[(g + 8) * 8 + 2 * q + 1] = of_d[3];
}

// One warp.  C comes in, and D goes out, at d; `lane_of` tells which lane's registers held each result.
extern "C" __global__ void tile_mma(const HalfPair* a, const HalfPair* b, float* d, float* lane_of)
{
    const int g = threadIdx.x / 4;
    const int q = threadIdx.x % 4;
    HalfPair of_a[2], of_b[1];
    load_fragments<8>(a, b, of_a, of_b);
    float sum[4] = {d[g * 8 + 2 * q], d[g * 8 + 2 * q + 1], d[(g + 8) * 8 + 2 * q], d[(g + 8) * 8 + 2 * q + 1]};
    multiply_add(sum, of_a, of_b);
    store_fragment(d, sum);
    const float lane = threadIdx.x;
    const float lanes[4] = {lane, lane, lane, lane};
    store_fragment(lane_of, lanes);
}

extern "C" __global__ void tile_scalar(const unsigned short* a, const unsigned short* b, float* d)
{
    for (int i = threadIdx.x; i < 128; i += 32) {
        float sum = d[i];
        for (int k = 0; k < 8; ++k) sum += as_float(a[i / 8 * 8 + k]) * as_float(b[i % 8 * 8 + k]);
        d[i] = sum;
    }
}

constexpr int kAccumulators = 8;

// Each warp's eight tiles end as rounds * A B, and are stored one by one.
template <int K>
__global__ void repeat_mma(const HalfPair* a, const HalfPair* b, float* d, int rounds)
{
    HalfPair of_a[K / 4], of_b[K / 8];
    load_fragments<K>(a, b, of_a, of_b);
    float sum[kAccumulators][4] = {};
#pragma unroll 4
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < kAccumulators; ++i) multiply_add(sum[i], of_a, of_b);
    }
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) store_fragment(d + (warp * kAccumulators + i) * 128, sum[i]);
}

#if __CUDA_ARCH__ >= 800
constexpr int kTile = 128;   // rows and columns of a block's results
constexpr int kStrip = 32;   // of the sum, staged at a time
constexpr int kPitch = 20;   // pairs from row to row of a strip: 16, and 4 to spread rows g = 0..7 over the banks
constexpr int kQuads = kStrip / 8;
constexpr int kThreads = 256;

__device__ __forceinline__ void stage(const uint4* from, int quads_per_row, HalfPair (&strip)[kTile][kPitch])
{
#pragma unroll
    for (int first = 0; first < kTile * kQuads; first += kThreads) {
        const int i = first + threadIdx.x;
        const int row = i / kQuads;
        const int quad = i % kQuads;
        *reinterpret_cast<uint4*>(&strip[row][4 * quad]) = from[static_cast<long long>(row) * quads_per_row + quad];
    }
}

// C = A B with A n x n row-major, B column-major (so that both are read along k); n is a multiple of 128.
// Blocks of kThreads threads.
extern "C" __global__ void __launch_bounds__(kThreads, 2) matmul_mma(const uint4* A, const uint4* B, float* C, int n)
{
    __shared__ alignas(16) HalfPair strip_a[kTile][kPitch];
    __shared__ alignas(16) HalfPair strip_b[kTile][kPitch];
    const int g = threadIdx.x % 32 / 4;
    const int q = threadIdx.x % 4;
    const int warp = threadIdx.x / 32;
    const int row = warp / 4 * 64 + g;     // of the block's results, where this lane's first ones are
    const int column = warp % 4 * 32 + g;  // of B
    const int quads_per_row = n / 8;
    A += static_cast<long long>(blockIdx.y) * kTile * quads_per_row;
    B += static_cast<long long>(blockIdx.x) * kTile * quads_per_row;
    float sum[4][4][4] = {};
#pragma unroll 1
    for (int k = 0; k < quads_per_row; k += kQuads) {
        stage(A + k, quads_per_row, strip_a);
        stage(B + k, quads_per_row, strip_b);
        __syncthreads();
#pragma unroll
        for (int half = 0; half < kStrip / 16; ++half) {
            const int pair = half * 8 + q;
            HalfPair of_b[4][2];
#pragma unroll
            for (int x = 0; x < 4; ++x) {
                of_b[x][0] = strip_b[column + 8 * x][pair];
                of_b[x][1] = strip_b[column + 8 * x][pair + 4];
            }
#pragma unroll
            for (int y = 0; y < 4; ++y) {
                const HalfPair of_a[4] = {strip_a[row + 16 * y][pair], strip_a[row + 16 * y + 8][pair],
                                          strip_a[row + 16 * y][pair + 4], strip_a[row + 16 * y + 8][pair + 4]};
#pragma unroll
                for (int x = 0; x < 4; ++x) multiply_add(sum[y][x], of_a, of_b[x]);
            }
        }
        __syncthreads();  // the next round overwrites what slower warps may still be reading
    }
    C += (static_cast<long long>(blockIdx.y) * kTile + row) * n + blockIdx.x * kTile + warp % 4 * 32 + 2 * q;
#pragma unroll
    for (int y = 0; y < 4; ++y) {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            float* at = C + static_cast<long long>(16 * y) * n + 8 * x;
            *reinterpret_cast<float2*>(at) = make_float2(sum[y][x][0], sum[y][x][1]);
            *reinterpret_cast<float2*>(at + 8LL * n) = make_float2(sum[y][x][2], sum[y][x][3]);
        }
    }
}
#endif
