"""The self-test from beginning to end: what is done in which order, and for how long.

Nested noise comes from child processes, because a process cannot see what it shares with itself; verdicts are taken
in this one, which lets go of the GPU's lock while children measure.
"""

from __future__ import annotations

import dataclasses
import secrets
import statistics
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.timers.timer_errors import TimerUnavailable
from pytest_gpuperf.formatting import utc_now
from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.timer_names import TIMERS, TimerName
from pytest_gpuperf.model.tolerance import PROFILES
from pytest_gpuperf.selftest.child import KernelSamples, Task, by_kernel, open_device, run_child
from pytest_gpuperf.selftest.detectable import Detectable, smallest_effect
from pytest_gpuperf.selftest.kernels import COPY, LOOP
from pytest_gpuperf.selftest.known_slowdowns import Subject, Wanted, make_subjects
from pytest_gpuperf.selftest.noise import KernelNoise, nested_noise, omega_bound, placement, placement_sds, pooled_sd
from pytest_gpuperf.selftest.refine import refined
from pytest_gpuperf.selftest.selftest_report import SCHEMA, SelftestReport, TimerReport
from pytest_gpuperf.selftest.symmetry import symmetry
from pytest_gpuperf.selftest.trials import ALPHA_SHARE, PERCENTS, Cell, Controls
from pytest_gpuperf.timing.blocks import Noise
from pytest_gpuperf.timing.machine_profile import MachineProfile
from pytest_gpuperf.timing.paired_run import Pairing

DEVICE = "pytest_gpuperf.device.discovery:open_device"
WANTED = (
    Wanted("loop 2.5 us", LOOP, duration_ns=2500.0),
    Wanted("loop 10 us", LOOP, duration_ns=10_000.0),
    Wanted("loop 100 us", LOOP, duration_ns=100_000.0),
    Wanted("loop 1 ms", LOOP, duration_ns=1_000_000.0),
    Wanted("copy 60 us", COPY, duration_ns=60_000.0),
)
TIGHT = PROFILES["tight"].delta

Progress = Callable[[str, float], None]
"""Told what is going on, and how much of all of it is done, 0 to 1."""


@dataclasses.dataclass(frozen=True)
class Extent:
    processes: int = 4
    rounds: int = 3
    blocks: int = 24
    """Blocks of each kernel against itself in every child process."""
    look_s: float = 2.0
    """At a slower version whose ratio only pairing tells; up to three looks at each."""
    verdicts_s: float = 150.0


FULL = Extent()
QUICK = Extent(processes=2, rounds=2, blocks=12, look_s=0.3, verdicts_s=12.0)


def run_selftest(extent: Extent, *, timer_name: TimerName | None = None, progress: Progress) -> SelftestReport:
    """Everything that is measured, and what follows from it.

    Raises ``NoDevice``, ``TimerUnavailable``, ``ChildFailed``, ``NotLinear``, ``UnexpectedCode``, ``BrokenProbe`` and
    what compiling, loading, locking and timing raise.
    """
    start = time.perf_counter()
    progress("opening the GPU, calibrating timers", 0.0)
    device = open_device(DEVICE)
    timer = device.timer(timer_name)
    timers = timer_reports(device)
    progress("making kernels of known length", 0.05)
    cache = CompileCache()
    with device.lock():
        subjects = [
            one
            if one.family == LOOP.name
            else refined(device, timer, one, PERCENTS, seconds=extent.look_s, seed=secrets.randbits(48), cache=cache)
            for one in make_subjects(device, timer, WANTED, PERCENTS, cache)
        ]
    children = _children(extent, timer.name, subjects, progress)
    progress("compiling slower versions", 0.35)
    controls = Controls(device, timer, subjects, secrets.randbits(48))
    with device.lock():
        controls.run(extent.verdicts_s, lambda share: progress("judging known slowdowns", 0.4 + 0.6 * share))
    progress("working out what can be gated", 1.0)
    report = _report(device, timer, timers, subjects, children, controls)
    return msgspec.structs.replace(report, seconds=time.perf_counter() - start)


def timer_reports(device: Device) -> tuple[TimerReport, ...]:
    """Tick and overhead of each timer, or why it cannot be used."""
    names: tuple[TimerName, ...] = TIMERS
    return tuple(_timer(device, name) for name in names)


def _timer(device: Device, name: TimerName) -> TimerReport:
    try:
        timer = device.timer(name)
    except TimerUnavailable as problem:
        return TimerReport(name=name, unavailable=f"{problem.reason}; {problem.remedy}")
    return TimerReport(name=name, tick_ns=timer.tick_ns, overhead_ns=timer.overhead_ns)


def _children(
    extent: Extent, timer: TimerName, subjects: Sequence[Subject], progress: Progress
) -> dict[str, list[KernelSamples]]:
    processes, of = [], extent.processes
    for number in range(1, of + 1):
        progress(f"measuring noise, process {number} of {of}", 0.1 + 0.25 * (number - 1) / of)
        task = Task(
            device=DEVICE, timer=timer, process=number, subjects=tuple(subjects), rounds=extent.rounds,
            blocks=extent.blocks, seed=secrets.randbits(48),
        )  # fmt: skip
        processes.append(run_child(task))
    return by_kernel(processes)


def _report(
    device: Device, timer: Timer, timers: tuple[TimerReport, ...], subjects: Sequence[Subject],
    children: dict[str, list[KernelSamples]], controls: Controls,
) -> SelftestReport:  # fmt: skip
    noise = tuple(nested_noise(name, [one.rounds for one in taken]) for name, taken in children.items())
    placed = placement_sds({name: placement([one.r for one in taken]) for name, taken in children.items()})
    same = {cell.subject.name: found for cell, found in controls.pairings.items() if _is_plain_same(cell) and found}
    found = [_detectable(subject, same[subject.name], placed[subject.name]) for subject in subjects
             if subject.name in same]  # fmt: skip
    processes = len(next(iter(children.values())))
    mirrored = [
        symmetry(name, [one.r for one in taken], [value for one in taken for value in one.carry_over])
        for name, taken in children.items()
    ]
    return SelftestReport(
        schema=SCHEMA, gpu=device.facts.name, uuid=device.facts.uuid, driver=device.facts.driver, timer=timer.name,
        timers=timers, processes=processes, noise=noise, controls=controls.results(),
        symmetry=tuple(one for one in mirrored if one is not None),
        detectable=tuple(one for one in found if one is not None),
        profile=_profile(device, timer, noise, processes, same, placed),
    )  # fmt: skip


def _is_plain_same(cell: Cell) -> bool:
    """The kernel against itself at the tightest profile: what block noise is read from."""
    return cell.percent == 0 and cell.tolerance == TIGHT


def _detectable(subject: Subject, same: Sequence[Pairing], placement: float) -> Detectable | None:
    blocks = [block for one in same for block in one.blocks]
    return smallest_effect(
        subject.name, subject.duration_ns, [ratios for one in same for ratios in one.ratios],
        size=round(statistics.median(one.size for one in same)),
        noise=_typical([one.noise for one in same]),
        block_s=statistics.median(block.seconds for block in blocks), placement_sd=placement, alpha=ALPHA_SHARE,
    )  # fmt: skip


def _typical(pilots: Sequence[Noise | None]) -> Noise | None:
    """The median of each figure; None for long launches, which have no pilot."""
    noises = [one for one in pilots if one is not None]
    if not noises:
        return None
    sds = [one.block_sd for one in noises if one.block_sd is not None]
    return Noise(
        sigma=statistics.median(one.sigma for one in noises), rho1=statistics.median(one.rho1 for one in noises),
        block_sd=statistics.median(sds) if sds else None,
    )  # fmt: skip


def _profile(
    device: Device, timer: Timer, noise: Sequence[KernelNoise], processes: int, same: dict[str, list[Pairing]],
    placed: dict[str, float],
) -> MachineProfile:  # fmt: skip
    block_sds = [float(np.std([value for one in found for value in one.r])) for found in same.values()]
    return MachineProfile(
        uuid=device.facts.uuid, gpu=device.facts.name, date=utc_now(), driver=device.facts.driver,
        timer=timer.name, tick_ns=timer.tick_ns, overhead_ns=timer.overhead_ns, omega=omega_bound(noise, processes),
        round_sd=min(0.2, pooled_sd([one.round_sd for one in noise])), block_sd=min(0.2, pooled_sd(block_sds)),
        placement_sd=min(0.2, pooled_sd(list(placed.values()))), plugin=__version__,
    )  # fmt: skip
