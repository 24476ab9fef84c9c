"""Measured ceilings of a GPU: what a roofline is drawn with.

Both are the best of a few medians: a ceiling is what the GPU can do, not what it does on average.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.interface import Slot, Timer

COPY_BYTES = 1 << 30
"""Of each of the two buffers; less on a GPU whose memory is short."""
_SAMPLES = 9
_FMA_CHAINS = 8
_FMA_STEPS = 4096
_THREADS = 256

_FMA_SOURCE = """
// Independent multiply-add chains per thread, enough of them to hide the latency of one.
extern "C" __global__ void gpuperf_fma(float* out, float a, float b)
{
    float x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x + c;
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * a + b;
    }
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c];
    if (sum == 1.5f) out[0] = sum;
}
"""


def measure_peak(device: Any, name: str) -> float:
    """``copy_bandwidth`` in bytes/s or ``fma_throughput`` in FLOP/s.  Raises ``KeyError`` for another name."""
    return {"copy_bandwidth": copy_bandwidth, "fma_throughput": fma_throughput}[name](device)


def _best_ns(device: Any, run: Callable[[], None]) -> float:
    timer: Timer = device.timer()
    return min(statistics.median(timer.measure([Slot(run, _SAMPLES)], "cold")[0]) for _ in range(3))


def copy_bandwidth(device: Any) -> float:
    """Bytes per second of a device-to-device copy, bytes read plus bytes written."""
    size = min(COPY_BYTES, device.facts.memory_bytes // 8)
    source = device.arrays.random(size // 4, "float32", seed=0)
    target = device.arrays.empty_like(source)

    def run() -> None:
        target.data.copy_from_device_async(source.data, source.nbytes, device.stream)

    return float(2 * source.nbytes / _best_ns(device, run) * 1e9)


def fma_throughput(device: Any) -> float:
    """Single-precision FLOP per second of independent FMAs, two operations each, at full occupancy."""
    from pytest_gpuperf.compile import KernelSource, compile_kernel

    options = (f"-DCHAINS={_FMA_CHAINS}", f"-DSTEPS={_FMA_STEPS}")
    binary = compile_kernel(KernelSource(text=_FMA_SOURCE, name="gpuperf_fma", options=options), device.facts.arch)
    kernel = device.load(binary)
    blocks = device.facts.sm_count * (device.facts.max_threads_per_sm // _THREADS)
    import numpy as np

    arguments = (device.arrays.empty(1), np.float32(0.5), np.float32(0.25))
    nanoseconds = _best_ns(device, lambda: kernel((blocks, 1, 1), (_THREADS, 1, 1), arguments, 0))
    return float(2 * _FMA_CHAINS * _FMA_STEPS * blocks * _THREADS / nanoseconds * 1e9)
