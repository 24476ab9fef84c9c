"""Canaries: what they are, and that one which changes has to be called something else."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device import peaks
from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.timing import canaries

TIMES_NS = {"gpuperf_copy": 16_000.0, "gpuperf_fma": 300_000.0}


class CanaryDevice:
    """A device and its timer: notes each launch and says what it takes."""

    name: TimerName = "cupti"
    tick_ns = 32.0
    overhead_ns = 0.0
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self) -> None:
        self.facts = nominal_facts("sm_90")
        self.arrays = self
        self.launched: list[tuple[Any, ...]] = []
        self.caches: dict[str, CacheMode] = {}

    def zeros(self, size: int) -> Any:
        return types.SimpleNamespace(nbytes=4 * size)

    empty = zeros

    def load(self, binary: Any) -> Any:
        return lambda grid, block, arguments, shared: self.launched.append((binary.name, grid, block, arguments))

    def state(self) -> DeviceState:
        return DeviceState(sm_clock_mhz=1980)

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        (slot,) = slots
        slot.run()
        name = self.launched[-1][0]
        self.caches[name] = cache
        return [[TIMES_NS[name]] * slot.samples]


@pytest.fixture
def device() -> CanaryDevice:
    return CanaryDevice()


def test_one_is_bound_by_memory_and_one_by_the_clock(device: CanaryDevice) -> None:
    times = canaries.canary_times(device, device, CompileCache())  # type: ignore[arg-type]
    assert times == pytest.approx({"copy": 16_000.0, "fma": 300_000.0})
    assert set(device.caches.values()) == {"warm"}
    assert copied_by(device) == canaries.COPIED_BYTES > 2 * device.facts.l2_bytes


def copied_by(device: CanaryDevice) -> int:
    _, grid, block, (source, target) = next(one for one in device.launched if one[0] == "gpuperf_copy")
    assert grid[0] * block[0] * peaks.COPY_VECTORS * 16 == source.nbytes == target.nbytes
    return int(source.nbytes)


def test_there_are_none_on_a_gpu_that_this_compiler_makes_no_code_for(device: CanaryDevice) -> None:
    device.facts = msgspec.structs.replace(device.facts, compute_capability=(99, 9))
    assert canaries.canary_times(device, device) == {}  # type: ignore[arg-type]
    assert device.launched == []


def test_there_are_none_where_the_test_has_taken_the_memory(
    device: CanaryDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(size: int) -> Any:
        raise MemoryError(f"Out of memory allocating {4 * size} bytes")

    monkeypatch.setattr(device, "zeros", full)
    assert canaries.canary_times(device, device) == {}  # type: ignore[arg-type]


def test_a_small_memory_is_not_filled(device: CanaryDevice) -> None:
    device.facts = msgspec.structs.replace(device.facts, memory_bytes=1 << 30)
    canaries.canary_times(device, device, CompileCache())  # type: ignore[arg-type]
    assert copied_by(device) == 64 << 20


def test_a_canary_that_does_something_else_is_called_something_else() -> None:
    """On record is a time by its name: change the name in ``canary_times`` along with what is pinned here."""
    text = f"{peaks.SOURCE}{peaks.OPTIONS}{peaks.THREADS}{peaks.COPY_BLOCK_BYTES}{canaries.COPIED_BYTES}"
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "d1ac52ed139f70db"
