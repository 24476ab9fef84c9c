"""Kernels whose work is a number in their source, so that a slowdown can be made to measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_together
from pytest_gpuperf.compile.cubin.cubin_reader import read_cubin, text_of
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.model.evidence import KernelBinary

OTHER_FUNCTION = """
extern "C" __global__ void gpuperf_other(float* p) { for (int i = 1; i < 99; ++i) p[i] += p[i - 1]; }
"""
Form = tuple[int, tuple[Any, ...]]
"""Grid and arguments of a launch."""


class UnknownSlowdown(Exception):
    """Two kernels differ in more than the amount of their work; the message says which."""


@dataclasses.dataclass(frozen=True)
class Family:
    """A kind of kernel; ``NAME`` and ``COUNT`` in its text are filled in."""

    name: str
    text: str
    threads: int
    """Per block."""
    form: Callable[[Device, int], Form]
    """Serves every count up to a given one."""


@dataclasses.dataclass(frozen=True)
class Probe:
    """One kernel of a family."""

    family: Family
    count: int
    moved: bool = False
    """Whether another function lies ahead of it in its module: where code lies is no property of a kernel."""

    def compiled(self, arch: str) -> KernelBinary:
        """Its machine code.  Raises what ``compile_kernel`` raises."""
        name = f"gpuperf_{self.family.name}_{self.count}"
        kernel = self.family.text.replace("NAME", name).replace("COUNT", str(self.count))
        source = KernelSource(text=OTHER_FUNCTION + kernel if self.moved else kernel, name=name)
        return compile_together([source], [arch], CompileCache())[source, arch]


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
KERNELS = {
    "short loop": Probe(LOOP, 130),
    "loop": Probe(LOOP, 700),
    "long loop": Probe(LOOP, 7500),
    "copy": Probe(COPY, 7 << 20),
}
"""About 2.5, 10, 100 and 60 us on an H200."""


def require_known_difference(baseline: KernelBinary, candidate: KernelBinary, added: int) -> None:
    """Raise ``UnknownSlowdown`` unless the candidate's code is the baseline's with a count that is ``added`` higher.

    All instructions have to be equal, but for the 32-bit words that hold the count.
    """
    old, new = _words(baseline), _words(candidate)
    differences = set((new[new != old] - old[new != old]).tolist()) if old.size == new.size else None
    if differences != ({added} if added else set()):
        raise UnknownSlowdown(
            f"{candidate.name} ({candidate.arch}): its machine code is not that of {baseline.name} with a count that "
            f"is {added} higher; please report this with the output of gpuperf doctor --json"
        )


def _words(binary: KernelBinary) -> NDArray[np.int64]:
    return np.frombuffer(text_of(read_cubin(binary.cubin).elf, binary.symbol).data, "<u4").astype(np.int64)
