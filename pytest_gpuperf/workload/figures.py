"""What a workload costs beside its time, measured and judged: device memory, host time, and its error.

Only what the test asks for is measured, after the time, so that nothing of it is in the time.
"""

from __future__ import annotations

import contextlib
import math
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from pytest_gpuperf.arguments import number_of
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.garbage import no_collection
from pytest_gpuperf.judge import secondary
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.time_record import Beside, HostTime
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.workload.check import WrongResult
from pytest_gpuperf.workload.confirm import leave
from pytest_gpuperf.workload.timed_workload import TimedWorkload


def measure_figures(work: TimedWorkload, book: TestRecord) -> None:
    """Measure what was asked for, and put it on the book with its judgements; the caller holds the GPU's lock.

    Raises ``WrongResult`` for an error that is no number, and what the test's own functions raise.
    """
    evidence, request = book.workloads[work.request.name], work.request
    figures: dict[str, Any] = {}
    judged: list[Judgement] = []
    for kind, field in BESIDE.items():
        if kind in request.measure:
            figures[field], found = _host(work) if kind == "host" else _exactly(work, kind)
            judged += found
        elif _gates(work) and getattr(_on_record(work), field) is not None:  # or it would pass unseen
            judged.append(secondary.not_asked_for(work.key, work.target, kind))
    if figures or judged:
        judgements = (*evidence.judgements, *judged)
        book.add(msgspec.structs.replace(evidence, beside=Beside(**figures), judgements=judgements))


def _gates(work: TimedWorkload) -> bool:
    return work.worker.options.gates and not work.worker.options.is_child


def _on_record(work: TimedWorkload) -> Beside:
    """Recorded figures; empty without any."""
    return (work.baseline.beside if work.baseline is not None else None) or Beside()


def _exactly(work: TimedWorkload, kind: Literal["accuracy", "memory"]) -> tuple[float, list[Judgement]]:
    """A figure without scatter, judged where this process gates."""
    after = _accuracy(work) if kind == "accuracy" else _memory(work)
    if not _gates(work):
        return after, []
    before = getattr(_on_record(work), BESIDE[kind])
    if before is None:
        return after, [secondary.new(work.key, work.target, kind)]
    return after, [secondary.judge_exact(work.key, work.target, kind, before, after, work.request.measure[kind])]


def _accuracy(work: TimedWorkload) -> float:
    """What the test's ``accuracy=`` says of one run."""
    request = work.request
    request.run()
    work.worker.device.synchronize()
    answer = request.accuracy() if request.accuracy is not None else None
    error = number_of(answer)
    if not 0 <= error < math.inf:
        why = f"accuracy= returned {answer!r}, which is no error of a result: it takes a finite number from 0 on"
        raise WrongResult(f"{request.name}: {why}; NaN in a result is for check= to refuse")
    return error


def _memory(work: TimedWorkload) -> int:
    """Of a launch its arrays, and of any workload what one run allocates; bytes."""
    request = work.request
    request.restore()
    arrays = array_bytes(request.launch) if request.launch is not None else 0
    return arrays + work.worker.device.bytes_of(request.workload)


def array_bytes(launch: Launch) -> int:
    """Bytes of the arrays that a launch is given, each address counted once; one that is a bare number is none."""
    sizes: dict[tuple[int | None, int], int] = {}
    for place, argument in enumerate(launch.arguments):
        if (facts := array_facts(argument)) is not None:
            array = facts.address, place if facts.address is None else 0  # a host's has none, in simulations
            sizes[array] = max(sizes.get(array, 0), facts.dtype.itemsize * math.prod(facts.shape))
    return sum(sizes.values())


def _host(work: TimedWorkload) -> tuple[HostTime, list[Judgement]]:
    """Its host time beside fixed work, judged where this process gates.  A change waits for a second process."""
    request, device, task, record = work.request, work.worker.device, work.worker.options.task, _on_record(work).host
    now = host_time(
        request.workload, request.reset, device.synchronize, work.expected_ns(), driver=device.facts.driver,
        budget_s=request.budget_s,
    )  # fmt: skip
    if isinstance(task, ConfirmTask) and record is not None:
        time_ns = secondary.as_on_record(record, now)
        leave(task, Confirmation(key=work.key, kind="host", identity=work.identity, time_ns=time_ns))
    if not _gates(work):
        return now, []
    if record is None:
        return now, [secondary.new(work.key, work.target, "host")]
    if (obstacle := secondary.incomparable(work.key, work.target, record, now)) is not None:
        return now, [obstacle]

    def settle(found: Sequence[Confirmation]) -> Judgement:
        after_ns, second_ns = secondary.as_on_record(record, now), found[0].time_ns if found else None
        return secondary.judge_host_time(work.key, work.target, record, after_ns, request.measure["host"], second_ns)

    judgement = settle(())
    if judgement.verdict in (Verdict.WORSE, Verdict.BETTER):
        work.worker.suspects.append(Suspect(judgement, work.identity, settle, request.budget_s))
    return now, [judgement]


# --- host time -----------------------------------------------------------------------------------

# The workload and fixed work of the plugin's own are exchanged several times, so that another clock and a busy machine
# move both.  What the GPU does meanwhile is not timed: it is waited for between two slots.

MOST_CALLS, LEAST_CALLS = 64, 4
"""Of a workload in one slot."""
SLOT_NS = 20e6
"""Device time that the calls of one slot may enqueue, so that none waits for room in the queue, and time of the host
that they may take."""
EXCHANGES = 16
PIECES = 12
REFERENCE = 2
"""Which fixed work it is: ratios to another are other figures."""


def host_time(
    run: Callable[[], Any], reset: Callable[[], Any] | None, wait: Callable[[], None], duration_ns: float, *,
    driver: str, budget_s: float,
) -> HostTime:  # fmt: skip
    """What ``run``, which takes ``duration_ns`` on the GPU, takes the host: medians over exchanges with the fixed work.

    Takes no more exchanges once ``budget_s`` seconds are over.
    """
    calls = calls_of(duration_ns)
    cost_of(run, reset, wait, calls)  # once to warm up
    _fixed_cost()
    end, ratios, times = time.perf_counter_ns() + budget_s * 1e9, list[float](), list[float]()
    while not times or (len(times) < EXCHANGES and time.perf_counter_ns() < end):
        first, fixed, again = cost_of(run, reset, wait, calls), _fixed_cost(), _fixed_cost()
        times.append(statistics.fmean((first, cost_of(run, reset, wait, calls))))
        ratios.append(times[-1] / statistics.fmean((fixed, again)))
    made_by = f"{platform.python_implementation()} {platform.python_version()}, reference {REFERENCE}, driver {driver}"
    return HostTime((statistics.median(ratios),), statistics.median(times), cpu_model(), made_by)


def calls_of(duration_ns: float) -> int:
    """How many calls a slot has of a workload that takes so long on the GPU."""
    return max(LEAST_CALLS, min(MOST_CALLS, int(SLOT_NS / max(duration_ns, 1.0))))


def cost_of(run: Callable[[], Any], reset: Callable[[], Any] | None, wait: Callable[[], None], calls: int) -> float:
    """From the call of ``run`` to its return, in nanoseconds: the median of ``calls`` at most.

    The GPU is idle before the first.
    """
    wait()
    with no_collection():
        took: list[int] = []
        while len(took) < calls and (len(took) < LEAST_CALLS or sum(took) < SLOT_NS):
            took.append(_called(run, reset))
    wait()
    return statistics.median(took)


def _called(run: Callable[[], Any], reset: Callable[[], Any] | None = None) -> int:
    if reset is not None:
        reset()
    before = time.perf_counter_ns()
    run()
    return max(time.perf_counter_ns() - before, 1)


class _FixedWorkPiece:
    """What the fixed work makes and calls."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name

    def both(self) -> tuple[int, str]:
        return self.number, self.name


def interpreter_work() -> None:
    """The fixed work: objects, their methods, names and tuples, as launching takes.

    The interpreter's own alone: where the loader puts a second library, such as that of ``struct``, decides in one
    process of 50 whether both together are 14 % slower for life.
    """
    found: dict[str, tuple[int, str]] = {}
    for number in range(PIECES):
        one = _FixedWorkPiece(number, str(number))
        found[one.name] = one.both()
        _ = tuple(found)


def _fixed_cost() -> float:
    with no_collection():
        return statistics.median(_called(interpreter_work) for _ in range(MOST_CALLS))


def cpu_model() -> str:
    """As Linux names it; else the architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())[:100]
    return platform.machine()
