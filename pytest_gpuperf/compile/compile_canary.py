"""A source whose time to compile is the measure of others: it never changes, and is compiled past every cache."""

from __future__ import annotations

from collections.abc import Callable

from pytest_gpuperf.compile.nvrtc import Program, compile_cubin

TEXT = """
template <int N> struct Steps {
    static __device__ float of(float x) { return Steps<N - 1>::of(x) * 1.5f + N; }
};
template <> struct Steps<0> {
    static __device__ float of(float x) { return x; }
};
extern "C" __global__ void canary(const float* a, float* b, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0.0f;
    __syncthreads();
    float x = Steps<32>::of(tile[threadIdx.x]);
#pragma unroll
    for (int k = 0; k < 32; ++k) x = __sinf(x) + tile[(threadIdx.x + k) & 255];
    if (i < n) b[i] = x;
}
"""
"""Templates, a loop to unroll and a barrier; about 50 ms.  Another text makes all records incomparable."""


def canary_compilation(arch: str) -> Callable[[], object]:
    """A function that compiles it for ``arch``.  Raises as ``compile_cubin``."""
    program = Program(TEXT, "<source>/canary.cu", "the compile canary", ())
    return lambda: compile_cubin(program, arch)
