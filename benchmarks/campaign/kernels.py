"""Kernels whose work is a number in their source, and versions of them that are slower by a known share."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.launch import Kernel

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
KERNELS: dict[str, tuple[str, float]] = {
    **{f"loop {us:g} us": ("loop", us) for us in (2.5, 5, 10.5, 20, 50, 100, 1000)},
    "copy 16 MB": ("copy", 1 << 20), "copy 256 MB": ("copy", 1 << 24), "softmax": ("softmax", 1 << 14),
}  # fmt: skip
"""By name: the family, and its microseconds if it is a loop, else its count."""
LONG: dict[str, tuple[str, float]] = {f"loop {ms} ms": ("loop", 1000.0 * ms) for ms in (10, 25, 250)}


class Bench:
    """Makes launches on a GPU, and times them."""

    def __init__(self, device: str) -> None:
        module, _, function = device.partition(":")
        self.device = getattr(importlib.import_module(module), function)()
        self.timer = self.device.timer(None)
        self.launch = functools.cache(self._launch)
        self._arguments = functools.cache(self._made)

    def _launch(self, family: str, count: int, most: int, behind: bool = False) -> Any:
        """``count`` of a family, in a grid and on buffers for ``most``; ``behind`` another function in its module."""
        name, arch = f"gpuperf_{family}_{count}", self.device.facts.arch
        text = f'extern "C" __global__ void {name}{TEXTS[family]}'.replace("COUNT", str(count))
        source = KernelSource(text=AHEAD + text if behind else text, name=name)
        binary = compile_kernel(source, arch, cache=CompileCache())
        kernel = Kernel({arch: binary}, device=self.device, native=arch)
        if family == "loop":
            return kernel.launch(self.device.facts.sm_count, 128, self._arguments(family, 0))
        return kernel.launch(-(-most // 256) if family == "copy" else most, 256, self._arguments(family, most))

    def _made(self, family: str, most: int) -> tuple[Any, ...]:
        arrays, elements = self.device.arrays, most * (4 if family == "copy" else 1024)
        if family == "loop":
            return arrays.empty(self.device.facts.sm_count * 128), np.float32(0.999), np.float32(0.5)
        return arrays.random(elements, seed=7), arrays.empty(elements)

    def times_ns(self, family: str, counts: Sequence[int], most: int) -> list[float]:
        """Median times with a cold L2, taken in turns."""
        slots = [Slot(self.launch(family, count, most), SAMPLES) for count in counts]
        taken = [self.timer.measure(slots, "cold") for _ in range(1 + REPEATS)][1:]
        return [statistics.median(itertools.chain(*of_one)) for of_one in zip(*taken, strict=True)]

    def plan(self, name: str, family: str, size: float) -> dict[str, Any]:
        """Counts of the kernel and of its slower versions, by percent, and its time, as measured."""
        counts, most, ns = [int(size)], round(BUFFERS * size), 1000 * size
        if family == "loop":
            low, high = self.times_ns(family, (2000, 100_000), 0)
            each, most = (high - low) / 98_000, 0
            counts = [2000 + round((ns - low) / each)]
        for percent in (1, 2):
            more = percent / 100 * (ns / each if family == "loop" else size)
            for _ in range(0 if family == "loop" else 2):  # not all of the time grows with the count
                ns, after = self.times_ns(family, [counts[0], counts[0] + math.ceil(more)], most)
                more *= min(max(percent / 100 / max(after / ns - 1, 1e-3), 0.5), 2.0)
                more = min(more, most - counts[0] - 1)
            counts.append(counts[0] + math.ceil(more))
        return {"kernel": name, "family": family, "duration_ns": ns, "most": most, "counts": counts}
