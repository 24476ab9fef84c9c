"""Kernels whose work is a number in their source, so that a slowdown can be made to measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.model.evidence import KernelBinary

OTHER_FUNCTION = """
extern "C" __global__ void gpuperf_other(float* p) { for (int i = 1; i < 99; ++i) p[i] += p[i - 1]; }
"""


@dataclasses.dataclass(frozen=True)
class Family:
    """A kind of kernel; ``NAME`` and ``COUNT``, the amount of its work, are filled into its text."""

    name: str
    text: str
    threads: int
    """Per block."""
    form: Callable[[Device, int], tuple[int, tuple[Any, ...]]]
    """Grid and arguments of a launch that serve every count up to the given one."""

    def compiled(self, count: int, arch: str, *, moved: bool = False) -> KernelBinary:
        """Machine code.  Raises what ``compile_kernel`` raises.

        ``moved``: another function lies ahead of it in its module, for where code lies is no property of a kernel.
        """
        name = f"gpuperf_{self.name}_{count}"
        kernel = self.text.replace("NAME", name).replace("COUNT", str(count))
        source = KernelSource(text=OTHER_FUNCTION + kernel if moved else kernel, name=name)
        return compile_kernel(source, arch, cache=CompileCache())


LOOP = Family(
    "loop",
    """extern "C" __global__ void NAME(float* out, float scale, float shift) {
    float a = (float)threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < COUNT; ++i) a = fmaf(a, scale, shift);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
""",
    threads=128,
    form=lambda device, _most: (
        device.facts.sm_count,
        (device.arrays.empty(device.facts.sm_count * 128), np.float32(0.999), np.float32(0.5)),
    ),
)
"""A chain of dependent FMAs, one per iteration."""
COPY = Family(
    "copy",
    """extern "C" __global__ void NAME(const float4* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] = in[i];
}
""",
    threads=256,
    form=lambda device, most: (-(-most // 256), tuple(device.arrays.random(most * 4, seed=seed) for seed in (7, 8))),
)
"""Moves ``COUNT`` elements of 16 bytes, one per thread."""
KERNELS = {"short loop": (LOOP, 130), "loop": (LOOP, 700), "long loop": (LOOP, 7500), "copy": (COPY, 7 << 20)}
"""Family and count; about 2.5, 10, 100 and 60 us on an H200."""
