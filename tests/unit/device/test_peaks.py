"""Peaks: what their kernels are, what is counted, and that the best of several medians wins."""

from __future__ import annotations

import types
from typing import Any

import pytest

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device import peaks
from pytest_gpuperf.device.discovery import nominal_facts


class PeakDevice:
    """Notes what runs; ``times_ns`` by what ran: the driver's copy, or a kernel."""

    stream = "stream"

    def __init__(self, **times_ns: float) -> None:
        self.facts = nominal_facts("sm_90")
        self.arrays = self
        self.ran: list[Any] = []
        self._times_ns = times_ns

    def random(self, shape: int, dtype: str, *, seed: int) -> Any:
        memory = types.SimpleNamespace(copy_from_device_async=lambda *given: self.ran.append(("driver", *given[1:])))
        return types.SimpleNamespace(shape=shape, nbytes=4 * shape, data=memory)

    def empty_like(self, array: Any) -> Any:
        return self.random(array.shape, "float32", seed=0)

    def empty(self, shape: int) -> Any:
        return self.random(shape, "float32", seed=0)

    def load(self, binary: Any) -> Any:
        return lambda launch, args: self.ran.append((binary.name, launch.grid, launch.block, *args))

    def timer(self) -> Any:
        return self

    def measure(self, slots: Any, cache: str) -> list[list[float]]:
        (slot,) = slots
        slot.run()
        return [[self._times_ns[self.ran[-1][0]]] * slot.samples]


@pytest.mark.parametrize(("driver_ns", "kernel_ns"), [(5e5, 8e5), (8e5, 5e5)])
def test_the_better_copy_counts_bytes_read_and_written(driver_ns: float, kernel_ns: float) -> None:
    device = PeakDevice(driver=driver_ns, gpuperf_copy=kernel_ns)
    assert peaks.measure_peak(device, "copy_bandwidth") == pytest.approx(2 * 2**30 / 5e-4)
    assert ("driver", 2**30, "stream") in device.ran
    _, grid, block, source, target = next(ran for ran in device.ran if ran[0] == "gpuperf_copy")
    assert grid[0] * block[0] * peaks.COPY_VECTORS * 16 == 2**30
    assert source.shape * 4 == target.shape * 4 == 2**30


def test_multiply_adds_count_twice_on_a_full_gpu() -> None:
    device = PeakDevice(gpuperf_fma=1e6)
    wanted = 2 * peaks.FMA_CHAINS * peaks.FMA_STEPS * 132 * 2048 / 1e-3
    assert peaks.measure_peak(device, "fma_throughput") == pytest.approx(wanted)


def test_the_kernels_are_what_they_are_counted_as() -> None:
    compiled = {
        name: compile_kernel(KernelSource(text=peaks.SOURCE, name=name, options=peaks.OPTIONS), "sm_90").profile
        for name in ("gpuperf_copy", "gpuperf_fma")
    }
    copy, fma = compiled["gpuperf_copy"], compiled["gpuperf_fma"]
    assert copy.opcodes["global_load"] == copy.opcodes["global_store"] == peaks.COPY_VECTORS
    assert fma.opcodes["fp32"] >= 16 * peaks.FMA_CHAINS
    assert fma.opcodes["fp32"] > 0.75 * fma.instructions
    assert max(copy.registers, fma.registers) <= 32  # full occupancy
    assert copy.spill_store_bytes == fma.spill_store_bytes == 0
