"""Kernels whose work is a number in their source, and versions of them that are slower by a known share."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.selftest.run import COPY, LOOP, Family

BUFFERS = 1.1
"""Grid and buffers serve so many times a baseline's count."""
SAMPLES, REPEATS = 30, 10
SOFTMAX = Family(
    "softmax",
    """extern "C" __global__ void NAME(const float* in, float* out) {
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
}
""",
    threads=256,
    form=lambda device, most: (most, tuple(device.arrays.random(most * 1024, seed=seed) for seed in (7, 8))),
)
FAMILIES = {family.name: family for family in (LOOP, COPY, SOFTMAX)}
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
        self._form = functools.cache(lambda family, most: FAMILIES[family].form(self.device, most))

    def _launch(self, family: str, count: int, most: int, behind: bool = False) -> Any:
        """``count`` of a family, in a grid and on buffers for ``most``; ``behind`` another function in its module."""
        arch, (grid, arguments) = self.device.facts.arch, self._form(family, most)
        binary = FAMILIES[family].compiled(count, arch, moved=behind)
        return Kernel({arch: binary}, device=self.device, native=arch).launch(grid, FAMILIES[family].threads, arguments)

    def times_ns(self, family: str, counts: Sequence[int], most: int) -> list[float]:
        """Median times with a cold L2, interleaved."""
        slots = [Slot(self.launch(family, count, most), SAMPLES) for count in counts]
        measured = [self.timer.measure(slots, "cold") for _ in range(1 + REPEATS)][1:]
        return [statistics.median(itertools.chain(*of_one)) for of_one in zip(*measured, strict=True)]

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
