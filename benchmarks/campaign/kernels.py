"""Kernels whose work is a number in their source, and versions of them that are slower by a known share.

Nothing here uses what an older package lacks.
"""

from __future__ import annotations

import importlib
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

BUFFERS = 1.1
"""Grid and buffers serve so many times a baseline's count."""
SAMPLES, REPEATS = 30, 10
TEXTS = {
    "loop": """(float* out, float scale, float shift) {
    float a = (float)threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < COUNT; ++i) a = fmaf(a, scale, shift);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}""",
    "copy": """(const float4* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] = in[i];
}""",
    "softmax": """(const float* in, float* out) {
    __shared__ float parts[256];
    if (blockIdx.x >= COUNT) return;
    float sum = 0;
    for (int i = threadIdx.x; i < 1024; i += 256) sum += __expf(in[blockIdx.x * 1024 + i]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < 1024; i += 256)
        out[blockIdx.x * 1024 + i] = __expf(in[blockIdx.x * 1024 + i]) / parts[0];
}""",
}
AHEAD = 'extern "C" __global__ void other(float* p) { for (int i = 1; i < 99; ++i) p[i] += p[i - 1]; }\n'


class Wanted(NamedTuple):
    """A kernel: of a length, or of a count."""

    family: str
    microseconds: float = 0.0
    count: int = 0


KERNELS = {
    **{f"loop {us:g} us": Wanted("loop", us) for us in (2.5, 5, 10.5, 20, 50, 100, 1000)},
    "copy 16 MB": Wanted("copy", count=1 << 20), "copy 256 MB": Wanted("copy", count=1 << 24),
    "softmax": Wanted("softmax", count=1 << 14),
}  # fmt: skip
LONG = {f"loop {ms} ms": Wanted("loop", 1000.0 * ms) for ms in (10, 25, 250)}


class Bench:
    """Makes launches on a GPU, and times them.  By nothing that an older package lacks."""

    def __init__(self, device: str) -> None:
        module, _, function = device.partition(":")
        self.device = getattr(importlib.import_module(module), function)()
        self.timer = self.device.timer(None)
        self._launches: dict[tuple[str, int, bool], Any] = {}
        self._arguments: dict[tuple[str, int], tuple[int, tuple[Any, ...]]] = {}

    def launch(self, family: str, count: int, most: int, *, behind: bool = False) -> Any:
        """``count`` of a family, in a grid and on buffers for ``most``; ``behind`` another function in its module."""
        from pytest_gpuperf.compile.cache import CompileCache
        from pytest_gpuperf.compile.compiler import compile_kernel
        from pytest_gpuperf.compile.source import KernelSource
        from pytest_gpuperf.device.launch import Kernel

        if (family, count, behind) not in self._launches:
            name, arch = f"gpuperf_{family}_{count}", self.device.facts.arch
            text = f'extern "C" __global__ void {name}{TEXTS[family]}'.replace("COUNT", str(count))
            source = KernelSource(text=AHEAD + text if behind else text, name=name)
            binary = compile_kernel(source, arch, cache=CompileCache())
            kernel = Kernel({arch: binary}, device=self.device, native=arch)
            grid, arguments = self._form(family, most)
            threads = 128 if family == "loop" else 256
            self._launches[family, count, behind] = kernel.launch(grid, threads, arguments)
        return self._launches[family, count, behind]

    def _form(self, family: str, most: int) -> tuple[int, tuple[Any, ...]]:
        most = 0 if family == "loop" else most
        if (family, most) not in self._arguments:
            arrays, sms = self.device.arrays, self.device.facts.sm_count
            elements = most * (4 if family == "copy" else 1024)
            self._arguments[family, most] = (
                (sms, (arrays.empty(sms * 128), np.float32(0.999), np.float32(0.5))) if family == "loop"
                else (-(-most // 256) if family == "copy" else most,
                      (arrays.random(elements, seed=7), arrays.empty(elements)))
            )  # fmt: skip
        return self._arguments[family, most]

    def times_ns(self, family: str, counts: Sequence[int], most: int) -> list[float]:
        """Median times with a cold L2, taken in turns."""
        from pytest_gpuperf.device.interface import Slot

        slots = [Slot(self.launch(family, count, most), SAMPLES) for count in counts]
        taken = [self.timer.measure(slots, "cold") for _ in range(1 + REPEATS)][1:]
        return [statistics.median(itertools.chain(*of_one)) for of_one in zip(*taken, strict=True)]

    def plan(self, name: str, wanted: Wanted) -> dict[str, Any]:
        """Counts of the kernel and of its slower versions, by percent, and true ratios, as measured."""
        family, at = wanted.family, (2000, 100_000)
        if family == "loop":
            low, high = self.times_ns(family, at, at[1])
            each = (high - low) / (at[1] - at[0])
            count = round((1000 * wanted.microseconds - low) / each) + at[0]
            added = {p: math.ceil(p / 100 * 1000 * wanted.microseconds / each) for p in (1, 2)}
            return {"kernel": name, "family": family, "duration_ns": 1000 * wanted.microseconds, "most": 0,
                    "counts": [count, count + added[1], count + added[2]]}  # fmt: skip
        count, most, counts = wanted.count, round(BUFFERS * wanted.count), [wanted.count]
        for percent in (1, 2):
            more = percent / 100 * count
            for _ in range(2):  # not all of the time grows with the count
                before, after = self.times_ns(family, [count, count + math.ceil(more)], most)
                more *= min(max(percent / 100 / max(after / before - 1, 1e-3), 0.5), 2.0)
                more = min(more, most - count - 1)
            counts.append(count + math.ceil(more))
        return {"kernel": name, "family": family, "duration_ns": before, "most": most, "counts": counts}
