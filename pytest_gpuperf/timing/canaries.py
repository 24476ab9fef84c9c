"""Canaries: two kernels of the plugin's own, timed beside each recording and where they can be compared with one.

No change of a user's touches them: where one takes another time than it took on the same GPU when a baseline was
recorded, it is the machine that changed.  *copy* is bound by memory, *fma* by the SM clock.  One that is changed gets
another name, so that nothing is compared with what it was.  ``judge.canary_shift`` judges.
"""

from __future__ import annotations

import statistics

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.peaks import COPY_BLOCK_BYTES, copying, multiplying
from pytest_gpuperf.timing.rounds import Workload, take_rounds

ROUNDS = 4
COPIED_BYTES = 128 << 20
"""By *copy*: more than an L2, so that what was there before has no say.  (On an H200 a copy of 32 MiB from a
flushed L2 differed by 1 % from process to process.)  They are zeros: a canary is compared with nothing but itself."""


def canary_times(device: Device, timer: Timer, cache: CompileCache | None = None) -> dict[str, float]:
    """Nanoseconds per launch of each canary, by name: geometric mean of the midmeans of four rounds.

    Empty where this compiler makes no code for the GPU, or the test has taken the memory.  The caller holds the GPU's
    lock.  Raises other errors of ``compile``, and those of the timer.
    """
    size = min(COPIED_BYTES, device.facts.memory_bytes // 16) // COPY_BLOCK_BYTES * COPY_BLOCK_BYTES
    try:
        source, target = (device.arrays.zeros(size // 4) for _ in range(2))
        workloads = {
            "copy": Workload(copying(device, source, target, cache), cache="warm"),
            "fma": Workload(multiplying(device, cache), cache="warm"),
        }
    except (UnknownArchitecture, MemoryError):
        return {}
    return {name: _time_ns(device, timer, workload) for name, workload in workloads.items()}


def _time_ns(device: Device, timer: Timer, workload: Workload) -> float:
    rounds = take_rounds(device, timer, workload, ROUNDS).rounds
    return statistics.geometric_mean(one.midmean for one in rounds)
