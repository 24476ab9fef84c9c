"""Kernels whose work is a number in their source, so that a slowdown can be made to measure.

*loop* is a chain of dependent FMAs, one per iteration, never unrolled; executed instructions are counted from its
machine code (``sass_loop``).  *copy* moves ``count`` 16-byte elements, one per thread, *scatter* writes ``count``
elements far apart, *softmax* does ``count`` rows; their grid is the same for every count.

``surroundings`` puts other functions around a kernel in its module: its machine code stays, and where it lies changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_together
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.model.evidence import KernelBinary

HEADROOM = 1.08
"""Buffers and grid reach for counts up to this many times a baseline's."""
_FILLER_STEPS = 37


class Form(NamedTuple):
    grid: int
    arguments: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Family:
    """A kind of kernel; ``NAME`` and ``COUNT`` in its text are filled in."""

    name: str
    text: str
    threads: int
    """Per block."""
    form: Callable[[Device, int], Form]
    """Grid and arguments for a capacity in counts; the same for every count within it."""


@dataclasses.dataclass(frozen=True)
class Probe:
    """One kernel of a family."""

    family: Family
    count: int
    surroundings: int = 0

    @property
    def name(self) -> str:
        return f"gpuperf_{self.family.name}_{self.count}"

    @property
    def source(self) -> KernelSource:
        kernel = self.family.text.replace("NAME", self.name).replace("COUNT", str(self.count))
        before = [_filler(f"gpuperf_a{i}", self.surroundings + i) for i in range(self.surroundings % 3)]
        after = [_filler(f"gpuperf_z{i}", self.surroundings * 2 + i) for i in range(self.surroundings * 2 % 5)]
        return KernelSource(text="\n".join([*before, kernel, *after]), name=self.name)


def _filler(name: str, length: int) -> str:
    """A function that is never called, the longer the larger ``length``."""
    steps = "\n".join(f"    a = a * {i + 2}.5f + p[{i}];" for i in range(_FILLER_STEPS * (1 + length % 7)))
    return f'extern "C" __global__ void {name}(float* p) {{\n    float a = p[0];\n{steps}\n    p[1] = a;\n}}\n'


def _loop_form(device: Device, _capacity: int) -> Form:
    blocks = device.facts.sm_count
    return Form(blocks, (device.arrays.empty(blocks * 128), np.float32(0.999), np.float32(0.5)))


LOOP = Family(
    "loop",
    """extern "C" __global__ void NAME(float* out, float scale, float shift) {
    float a = (float)threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < COUNT; ++i) a = fmaf(a, scale, shift);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
""",
    128,
    _loop_form,
)


COPY = Family(
    "copy",
    """extern "C" __global__ void NAME(const float4* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] = in[i];
}
""",
    256,
    lambda device, most: Form(-(-most // 256), (device.arrays.random(most * 4, seed=7), device.arrays.empty(most * 4))),
)

_SCATTERED = 1 << 24
"""Elements that *scatter* writes to: 1,024 rows of 16,384."""

SCATTER = Family(
    "scatter",
    """extern "C" __global__ void NAME(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[(i & 1023) * 16384 + (i >> 10)] = in[i];
}
""",
    256,
    lambda device, most: Form(-(-most // 256), (device.arrays.random(most, seed=8), device.arrays.empty(_SCATTERED))),
)

SOFTMAX = Family(
    "softmax",
    """__device__ float gathered(float mine, float* shared, bool largest) {
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float other = shared[threadIdx.x + half];
            shared[threadIdx.x] = largest ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
        }
        __syncthreads();
    }
    float all = shared[0];
    __syncthreads();
    return all;
}
extern "C" __global__ void NAME(const float* in, float* out) {
    __shared__ float shared[256];
    if (blockIdx.x >= COUNT) return;
    const float* row = in + blockIdx.x * 1024;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < 1024; i += 256) most = fmaxf(most, row[i]);
    most = gathered(most, shared, true);
    for (int i = threadIdx.x; i < 1024; i += 256) sum += __expf(row[i] - most);
    sum = gathered(sum, shared, false);
    for (int i = threadIdx.x; i < 1024; i += 256) out[blockIdx.x * 1024 + i] = __expf(row[i] - most) / sum;
}
""",
    256,
    lambda device, most: Form(most, (device.arrays.random(most * 1024, seed=9), device.arrays.empty(most * 1024))),
)
"""One block per row of 1,024: shared memory, barriers, three passes."""

FAMILIES: dict[str, Family] = {family.name: family for family in (LOOP, COPY, SCATTER, SOFTMAX)}


def capacity_of(count: int) -> int:
    """Counts that buffers made for a baseline of ``count`` reach, in whole blocks of 256."""
    return -(-int(count * HEADROOM) // 256) * 256


def compile_probes(probes: Iterable[Probe], arch: str, cache: CompileCache | None = None) -> dict[Probe, KernelBinary]:
    """Machine code of each, compiled together.  Raises what ``compile_kernel`` raises."""
    sources = {probe: probe.source for probe in probes}
    made = compile_together(sources.values(), [arch], cache)
    return {probe: made[source, arch] for probe, source in sources.items()}


def launch_of(device: Device, binary: KernelBinary, family: Family, capacity: int) -> Launch:
    """A launch of one kernel, whose grid and arguments serve every count up to ``capacity``."""
    arch = device.facts.arch
    kernel = Kernel({arch: binary}, device=device, native=arch, ptx=_no_ptx)
    form = family.form(device, capacity)
    return kernel.launch(form.grid, family.threads, form.arguments)


def _no_ptx(arch: str) -> str:
    raise NotImplementedError(f"the self-test's kernels are machine code only, there is no PTX for {arch}")
