// One condition per lane: what a mask of true and false costs a warp.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (SIMT architecture, warp
// divergence).
//
// Bit `lane` of a 32-bit mask decides which side of the branch a thread runs: a chain of multiply-adds, or a chain of
// shifts and exclusive ors.  One kernel, three masks:
//
//   0xB          the talk's table: lanes 0, 1 and 3 are true, the others false.  The warp runs both sides, three
//                lanes working in one and 29 in the other.
//   0xFFFFFFFF   all true: one side.
//   0            all false: the other side.
//
// The instructions of a divergent warp are the sum of both sides'.  Its time is a little less: while one warp is in the
// additions, another can be in the exclusive ors, and the two use different units.
//
// In the machine code: FFMA in one loop, SHF and LOP3 in another, a branch around each.  Sides this long are never
// predicated; a side of two or three instructions would be.

constexpr int kFmas = 1024;
constexpr int kTurns = 240;  // each of two instructions on a unit of half the width; 256 would undo each other

__device__ __forceinline__ unsigned multiply_add(unsigned bits, float factor, float term)
{
    float x = __uint_as_float(bits);
#pragma unroll 64
    for (int i = 0; i < kFmas; ++i) x = fmaf(x, factor, term);
    return __float_as_uint(x);
}

__device__ __forceinline__ unsigned turn_and_flip(unsigned bits, unsigned key)
{
#pragma unroll 60
    for (int i = 0; i < kTurns; ++i) bits = __funnelshift_l(bits, bits, 5) ^ key;
    return bits;
}

extern "C" __global__ void branch_by_mask(const unsigned* in, unsigned* out, unsigned mask, float factor, float term,
                                          unsigned key, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned bits = in[i];
    if (mask >> (threadIdx.x % 32) & 1u) {
        bits = multiply_add(bits, factor, term);
    } else {
        bits = turn_and_flip(bits, key);
    }
    out[i] = bits;
}
