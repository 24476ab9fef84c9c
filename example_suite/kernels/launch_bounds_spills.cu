// __launch_bounds__: a promise about blocks and a wish for occupancy, paid for in registers.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (exceeding the register
// limit).
//
// Every thread keeps a rod of 56 cells in registers and lets heat flow along it for a number of steps; the ends are
// cold.  Every step reads and writes all cells, so there is none that could be put away meanwhile.  The compiler takes
// 78 registers.
//
//   heat_unbounded   no bounds.  Three blocks of 256 threads fit the 65 536 registers of an SM.
//   heat<256, 3>     asks for those three.  The same code, and a promise: whoever adds registers hears of it in spills.
//   heat<256, 4>     64 registers per thread: a few cells live in local memory.
//   heat<1024, 1>    the same limit by a wrong promise: the launch still has 256 threads, but 1024 could come.
//   heat<256, 6>     40 registers.
//   heat<256, 8>     32 registers: full occupancy, and most cells go to local memory and come back, every step.
//
// Arithmetic limits this kernel, not latency: more warps bring nothing, and what they cost shows in full.
//
// In the machine code: STL and LDL in the loop over steps, and the stack frame.  On sm_120 an SM holds 1536 threads,
// which are six blocks of 256: the compiler ignores a wish for eight there.

constexpr int kCells = 56;
constexpr int kThreads = 256;  // of a block as it is launched

// A block's cells lie together, those of all its threads side by side: every address is a register and a constant.
__device__ __forceinline__ long long first_cell()
{
    return static_cast<long long>(blockIdx.x) * (kCells * kThreads) + threadIdx.x;
}

__device__ __forceinline__ void flow(const float* in, float* out, float share, int steps)
{
    const float* from = in + first_cell();
    float cells[kCells];
#pragma unroll
    for (int k = 0; k < kCells; ++k) cells[k] = from[k * kThreads];
    const float stays = 1.0f - 2.0f * share;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        float left = 0.0f;
#pragma unroll
        for (int k = 0; k < kCells; ++k) {
            const float here = cells[k];
            const float right = k + 1 < kCells ? cells[k + 1] : 0.0f;
            cells[k] = fmaf(share, left + right, stays * here);
            left = here;
        }
    }
    float* to = out + first_cell();
#pragma unroll
    for (int k = 0; k < kCells; ++k) to[k * kThreads] = cells[k];
}

extern "C" __global__ void heat_unbounded(const float* in, float* out, float share, int steps)
{
    flow(in, out, share, steps);
}

template <int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) heat(const float* in, float* out, float share, int steps)
{
    flow(in, out, share, steps);
}
