"""Measured ceilings of a GPU: what a roofline is drawn with.

Each is the best of a few medians, for a ceiling is what the GPU can do, not what it does on average.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Configuration, Device, Slot, Timer

COPY_BYTES = 1 << 30
"""Size of each of the two buffers: many times any L2.  Less on a GPU whose memory is short."""
BATCHES = 3
SAMPLES = 9
THREADS = 256
COPY_VECTORS = 4
"""16-byte loads that a thread has in flight."""
COPY_BLOCK_BYTES = THREADS * COPY_VECTORS * 16
"""Bytes that one block copies."""
FMA_CHAINS = 8
FMA_STEPS = 4096

SOURCE = """
extern "C" __global__ void gpuperf_copy(const float4* __restrict__ from, float4* __restrict__ to)
{
    size_t first = (size_t)blockIdx.x * VECTORS * blockDim.x + threadIdx.x;
    float4 kept[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) kept[v] = from[first + v * blockDim.x];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) to[first + v * blockDim.x] = kept[v];
}

// Chains of multiply-adds that do not depend on each other, enough of them to hide the latency of one.
extern "C" __global__ void gpuperf_fma(float* out, float a, float b)
{
    float x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x + c;
#pragma unroll 16
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = fmaf(x[c], a, b);
    }
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c];
    if (sum == 1.5f) out[0] = sum;  // never: keeps the work from being optimised away
}
"""
OPTIONS = (f"-DVECTORS={COPY_VECTORS}", f"-DCHAINS={FMA_CHAINS}", f"-DSTEPS={FMA_STEPS}")


def measure_peak(device: Any, name: str) -> float:
    """The ``copy_bandwidth`` in bytes/s, ``fma_throughput`` in FLOP/s.  Raises ``TimerError``."""
    return {"copy_bandwidth": _copy_bandwidth, "fma_throughput": _fma_throughput}[name](device)


def _copy_bandwidth(device: Any) -> float:
    """Bytes read plus written per second, by the driver or by a kernel; of random data, for zeros draw less power."""
    size = min(COPY_BYTES, device.facts.memory_bytes // 8) // COPY_BLOCK_BYTES * COPY_BLOCK_BYTES
    source = device.arrays.random(size // 4, "float32", seed=0)
    target = device.arrays.empty_like(source)
    by_kernel = _launch(device, "gpuperf_copy", size // COPY_BLOCK_BYTES, source, target)

    def by_driver() -> None:
        target.data.copy_from_device_async(source.data, size, device.stream)

    return float(2 * size / min(_best_ns(device, by_kernel), _best_ns(device, by_driver)) * 1e9)


def _fma_throughput(device: Any) -> float:
    """Single-precision FLOP per second, two for each fused multiply-add: 8 chains in every resident thread."""
    blocks = device.facts.sm_count * (device.facts.max_threads_per_sm // THREADS)
    run = _launch(device, "gpuperf_fma", blocks, device.arrays.empty(1), np.float32(0.999), np.float32(0.001))
    flop = 2 * FMA_CHAINS * FMA_STEPS * blocks * THREADS
    return float(flop / _best_ns(device, run) * 1e9)


def _launch(device: Device, name: str, blocks: int, *arguments: Any) -> Callable[[], None]:
    source = KernelSource(text=SOURCE, name=name, options=OPTIONS)
    kernel = device.load(compile_kernel(source, device.facts.arch, cache=CompileCache()))
    return lambda: kernel(Configuration((blocks, 1, 1), (THREADS, 1, 1)), arguments)


def _best_ns(device: Any, run: Callable[[], None]) -> float:
    timer: Timer = device.timer()
    return min(statistics.median(timer.measure([Slot(run, SAMPLES)], "warm")[0]) for _ in range(BATCHES))
