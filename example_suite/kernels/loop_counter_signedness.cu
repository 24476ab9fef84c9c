// The type of a loop counter: what the compiler may assume about it.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (small changes can have a
// large impact).
//
//   unsigned counter   may legally wrap around to 0.  The compiler cannot know how often the loop runs, because
//                      i += 2 might step over the end and start again; so after unrolling it keeps the test of the
//                      end in every one of the 128 copies of the body.
//   signed counter     must not overflow.  The number of rounds is known before the first one: 128 copies in a row, one
//                      test, and the few rounds that are left over apart.
//
//   count_by_one       the control: 0, 1, 2, ... cannot step over the end, and an unsigned counter costs nothing.
//
// In the machine code: the same FFMA in both; count BRA and ISETP.  The index into the four values is the same for
// every eighth counter, so after unrolling it is known and the values stay in registers: no stack.

template <typename Counter>
__device__ __forceinline__ void update_in_turn(const float4* in, float4* out, float scale, float offset, Counter rounds)
{
    const long long own = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 given = in[own];
    float values[4] = {given.x, given.y, given.z, given.w};
#pragma unroll 128
    for (Counter i = 0; i < rounds; i += 2) {
        const Counter turn = (i % 8) / 2;
        values[turn] = values[turn] * scale + offset;
    }
    out[own] = make_float4(values[0], values[1], values[2], values[3]);
}

// As `update_in_turn`, but for a counter that goes up by 1: it cannot step over the end, whatever its type.
template <typename Counter>
__global__ void count_by_one(const float4* in, float4* out, float scale, float offset, Counter rounds)
{
    const long long own = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 given = in[own];
    float values[4] = {given.x, given.y, given.z, given.w};
    const Counter pairs = rounds / 2 + rounds % 2;
#pragma unroll 128
    for (Counter i = 0; i < pairs; ++i) {
        const Counter turn = i % 4;
        values[turn] = values[turn] * scale + offset;
    }
    out[own] = make_float4(values[0], values[1], values[2], values[3]);
}

extern "C" __global__ void count_unsigned(const float4* in, float4* out, float scale, float offset, unsigned rounds)
{
    update_in_turn<unsigned>(in, out, scale, offset, rounds);
}

extern "C" __global__ void count_signed(const float4* in, float4* out, float scale, float offset, int rounds)
{
    update_in_turn<int>(in, out, scale, offset, rounds);
}
