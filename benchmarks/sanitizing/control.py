"""A kernel that is wrong in just the way that a tool is there to see.

    compute-sanitizer --tool racecheck python -m sanitizing.control racecheck

A tool that reports nothing of it would report nothing of a kernel of the suite either.
"""

from __future__ import annotations

import sys

WRONG = {
    "memcheck": 'extern "C" __global__ void wrong(float* out) { out[1024 + threadIdx.x] = 1.0f; }',
    "racecheck": """
extern "C" __global__ void wrong(float* out)
{
    __shared__ float values[64];
    values[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = values[63 - threadIdx.x];
}
""",
    "synccheck": """
extern "C" __global__ void wrong(float* out)
{
    if (threadIdx.x % 32 < 16) __syncthreads();
    out[threadIdx.x] = 1.0f;
}
""",
}
"""By tool: a write beyond the end, a missing barrier, a barrier for half of a warp."""


def main() -> None:
    """Launch the tool's kernel; what becomes of it is for the tool to say."""
    import cupy

    cupy.cuda.set_allocator(None)
    out = cupy.zeros(64, dtype="float32")
    cupy.RawKernel(WRONG[sys.argv[1]], "wrong")((1,), (64,), (out,))
    cupy.cuda.runtime.deviceSynchronize()


if __name__ == "__main__":
    main()
