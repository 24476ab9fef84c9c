// A matrix product that keeps Hopper's tensor cores busy: fed from shared memory, by copies that nobody waits for.
// From the "Optimization" chapter of a CUDA course ("Use Tensor Cores (for GEMM)"), carried on to Hopper's wgmma.
//
// C = A B^T in bfloat16 with sums in float; A is m x k, B is n x k, C is m x n.  A block takes 128 x 256 results, and
// goes through k in slabs of 64: eight warps multiply, a ninth copies.  Both sides know of each other by barriers only:
// `full` says that a slab has come, `empty` that all warps are done with it.  There is one block per SM, which takes
// one tile of C after another.
//
//   matmul<MmaSync, 4>  multiplies by mma.sync: every warp loads its fragments into registers, and waits for both.
//   matmul<Wgmma, 1>    multiplies by wgmma: four warps together, operands straight from shared memory, asynchronously.
//                       But there is room for one slab, so that copy and product take turns.
//   matmul<Wgmma, 4>    has room for four: three are on their way while one is multiplied.
//   multiply_only       the same products of one slab over and over, with nothing to copy: the ceiling.
//
// Operands are packed beforehand, so that a slab of a tile is one piece of memory: panels of 128 rows of A or 256 of B,
// in which 8 rows by 8 columns lie together (a core matrix, 128 bytes).  Then one bulk copy of the copy engine (TMA)
// fetches a slab, and no swizzle is needed: a core matrix covers all 32 banks by itself.
//
// In the machine code: HGMMA.64x256x16.F32.BF16 with its operands in a descriptor, LDSM and HMMA.16816 in its place
// for mma.sync, UBLKCP for the bulk copies, SYNCS for the barriers.  Only sm_90a has wgmma; for others the kernels are
// empty.  In earnest, use cuBLAS or CUTLASS.

#include "bulk_copies.cuh"

using Quad = uint4;  // eight bfloat16: a row of a core matrix

constexpr int kRows = 128;     // of C, in a tile
constexpr int kColumns = 256;  // of C, in a tile
constexpr int kSlab = 64;      // of k, copied at a time
constexpr int kQuadsOfA = kRows * kSlab / 8;
constexpr int kQuadsOfB = kColumns * kSlab / 8;
constexpr int kQuads = kQuadsOfA + kQuadsOfB;
constexpr int kConsumers = 8;  // warps that multiply
constexpr int kThreads = 32 * (kConsumers + 1);
constexpr int kGroup = 16;     // rows of tiles that are taken together, so that what they read stays in the L2

struct Wgmma;
struct MmaSync;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// A warpgroup of four warps takes 64 x 256 results, 128 in every lane.
struct Wgmma {
    static constexpr int in_flight = 1;  // slabs that may still be multiplied when the next one is begun

    // Core matrices of `rows` rows: 128 bytes from one to that below it, 16 rows from one to that beside it.
    static __device__ unsigned long long descriptor(const Quad* first, int rows)
    {
        const unsigned long long beside = rows, below = 8;  // in quads
        return (shared_address(first) >> 4 & 0x3fff) | beside << 16 | below << 32;
    }

    static __device__ void multiply_16(float (&d)[128], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile(
            "{ .reg .pred add; setp.ne.b32 add, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22,"
            "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43,"
            "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64,"
            "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85,"
            "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104,"
            "%105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121,"
            "%122, %123, %124, %125, %126, %127"
            "}, %128, %129, add, 1, 1, 0, 0; }"
            : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)
            : "l"(a), "l"(b), "r"(add));
    }

    static __device__ void multiply(float (&d)[128], const Quad* slab, bool add)
    {
        const Quad* a = slab + threadIdx.x / 128 * 64;
        const Quad* b = slab + kQuadsOfA;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < kSlab / 8; k += 2) {
            multiply_16(d, descriptor(a + k * kRows, kRows), descriptor(b + k * kColumns, kColumns), add || k > 0);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    // Until no more than so many slabs are still being multiplied.
    template <int Slabs>
    static __device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Slabs) : "memory"); }

    // Of this thread's pair i of results, in the block's tile.
    static __device__ int row(int i) { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8; }
    static __device__ int column(int i) { return i / 2 * 8 + threadIdx.x % 4 * 2; }
};

// A warp takes 64 x 64 results, 4 x 8 tiles of 16 x 8, from fragments in registers.
struct MmaSync {
    static constexpr int in_flight = 0;

    static __device__ void load(unsigned (&fragments)[4], const Quad* row)
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                     : "r"(shared_address(row))
                     : "memory");
    }

    static __device__ void multiply_16(float* d, const unsigned (&a)[4], const unsigned* b)
    {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }

    static __device__ void multiply(float (&d)[128], const Quad* slab, bool add)
    {
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        const Quad* a = slab + lane / 16 * kRows + warp / 4 * 64 + lane % 16;
        const Quad* b = slab + kQuadsOfA + lane / 8 % 2 * kColumns + warp % 4 * 64 + lane / 16 * 8 + lane % 8;
        if (!add) {
#pragma unroll
            for (float& sum : d) sum = 0;
        }
#pragma unroll 1
        for (int k = 0; k < kSlab / 8; k += 2) {
            unsigned of_b[4][4];
#pragma unroll
            for (int x = 0; x < 4; ++x) load(of_b[x], b + k * kColumns + 16 * x);
#pragma unroll
            for (int y = 0; y < 4; ++y) {
                unsigned of_a[4];
                load(of_a, a + k * kRows + 16 * y);
#pragma unroll
                for (int x = 0; x < 8; ++x) multiply_16(d + 32 * y + 4 * x, of_a, of_b[x / 2] + x % 2 * 2);
            }
        }
    }

    template <int Slabs>
    static __device__ void wait() {}  // what it reads of a slab is in registers

    static __device__ int row(int i)
    {
        return threadIdx.x / 128 * 64 + i / 16 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8;
    }
    static __device__ int column(int i) { return threadIdx.x / 32 % 4 * 64 + i / 2 % 8 * 8 + threadIdx.x % 4 * 2; }
};

__device__ __forceinline__ void copy_slab(Quad* slab, const Quad* a, const Quad* b, Barrier& full)
{
    arrive_and_expect(full, kQuads * sizeof(Quad));
    bulk_copy(slab, a, kQuadsOfA * sizeof(Quad), full);
    bulk_copy(slab + kQuadsOfA, b, kQuadsOfB * sizeof(Quad), full);
}

template <class Instruction>
__device__ __forceinline__ void store(float* c, int n, const float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        float* at = c + static_cast<long long>(Instruction::row(i)) * n + Instruction::column(i);
        *reinterpret_cast<float2*>(at) = make_float2(d[2 * i], d[2 * i + 1]);
    }
}

// Row and column, in tiles, of a tile of C: in groups of kGroup rows of tiles, column by column.
__device__ __forceinline__ int2 place_of(int tile, int rows, int columns)
{
    const int first = tile / (kGroup * columns) * kGroup;
    const int height = min(kGroup, rows - first);
    const int within = tile - first * columns;
    return make_int2(first + within % height, within / height);
}

#endif

// m is a multiple of 128, n of 256, k of 64.  As many blocks of kThreads threads as there are SMs, with
// Stages * kQuads quads of dynamic shared memory.
template <class Instruction, int Stages>
__global__ void __launch_bounds__(kThreads, 1) matmul(const Quad* A, const Quad* B, float* C, int m, int n, int k)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(128) Quad stages[];
    __shared__ Barrier full[Stages], empty[Stages];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Stages; ++stage) {
            initialise(full[stage], 1);
            initialise(empty[stage], 32 * kConsumers);
        }
        publish_barriers();
    }
    __syncthreads();

    const int rows = m / kRows, columns = n / kColumns, slabs = k / kSlab;
    unsigned step = 0;  // slabs so far, of all tiles
    if (threadIdx.x >= 32 * kConsumers) {
        if (threadIdx.x % 32 != 0) return;
        for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
            const int2 at = place_of(tile, rows, columns);
            const Quad* a = A + static_cast<long long>(at.x) * slabs * kQuadsOfA;
            const Quad* b = B + static_cast<long long>(at.y) * slabs * kQuadsOfB;
            for (int slab = 0; slab < slabs; ++slab, ++step, a += kQuadsOfA, b += kQuadsOfB) {
                const unsigned stage = step % Stages;
                wait_for(empty[stage], step / Stages % 2 ^ 1);  // at first they are: before phase 0, phase 1 is over
                copy_slab(stages + stage * kQuads, a, b, full[stage]);
            }
        }
        return;
    }
    constexpr int behind = Stages > 1 ? Instruction::in_flight : 0;  // slabs
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        float d[128];
        for (int slab = 0; slab < slabs; ++slab, ++step) {
            const unsigned stage = step % Stages;
            wait_for(full[stage], step / Stages % 2);
            Instruction::multiply(d, stages + stage * kQuads, slab > 0);
            Instruction::template wait<behind>();
            if (slab >= behind) arrive(empty[(step - behind) % Stages]);
        }
        Instruction::template wait<0>();
        if (behind > 0) arrive(empty[(step - 1) % Stages]);
        const int2 at = place_of(tile, rows, columns);
        store<Instruction>(C + static_cast<long long>(at.x) * kRows * n + at.y * kColumns, n, d);
    }
#endif
}

// `rounds` times the product of the first slabs of A and B; every block stores its own, one below the other in D.
extern "C" __global__ void __launch_bounds__(kThreads, 1) multiply_only(const Quad* A, const Quad* B, float* D,
                                                                        int rounds)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(128) Quad slab[];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        initialise(full, 1);
        publish_barriers();
        copy_slab(slab, A, B, full);
    }
    __syncthreads();
    if (threadIdx.x >= 32 * kConsumers) return;
    wait_for(full, 0);
    float d[128];
    for (int round = 0; round < rounds; ++round) {
        Wgmma::multiply(d, slab, round > 0);
        Wgmma::wait<1>();
    }
    Wgmma::wait<0>();
    store<Wgmma>(D + static_cast<long long>(blockIdx.x) * kRows * kColumns, kColumns, d);
#endif
}
