"""Secondary metrics of a workload, measured and judged: device memory, host time, and its error.

They are measured after the time, if the test asks for them, so that they do not disturb it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from pytest_gpuperf.arguments import number_of
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.judge import secondary
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.time_record import HostTime, SecondaryMetrics
from pytest_gpuperf.model.verdict import SECONDARY, Judgement, SecondaryKind, Verdict
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.timing.host_time import host_time
from pytest_gpuperf.workload.check import WrongResult
from pytest_gpuperf.workload.confirm import write_result
from pytest_gpuperf.workload.timed_workload import TimedWorkload


def measure_figures(work: TimedWorkload, test: TestRecord) -> None:
    """Measure the requested metrics, and add them to the test's record, judged; the caller holds the GPU's lock.

    Raises ``WrongResult`` for an error that is no number, and what the test's own functions raise.
    """
    evidence, request = test.workloads[work.request.name], work.request
    figures: dict[str, Any] = {}
    judged: list[Judgement] = []
    for kind, field in SECONDARY.items():
        if kind in request.measure:
            figures[field], found = _host(work) if kind == "host" else _exactly(work, kind)
            judged += found
        elif _gates(work) and getattr(_on_record(work), field) is not None:  # or it would pass unseen
            judged.append(secondary.not_asked_for(work.key, work.target, kind))
    if figures or judged:
        judgements = (*evidence.judgements, *judged)
        test.add(msgspec.structs.replace(evidence, secondary=SecondaryMetrics(**figures), judgements=judgements))


def _gates(work: TimedWorkload) -> bool:
    return work.run.options.gates and not work.run.options.is_child


def _on_record(work: TimedWorkload) -> SecondaryMetrics:
    """Recorded figures; empty without any."""
    return (work.baseline.secondary if work.baseline is not None else None) or SecondaryMetrics()


def _exactly(work: TimedWorkload, kind: SecondaryKind) -> tuple[float, list[Judgement]]:
    """A figure without scatter, judged where this process gates."""
    after = _accuracy(work) if kind == "accuracy" else _memory(work)
    if not _gates(work):
        return after, []
    before = getattr(_on_record(work), SECONDARY[kind])
    if before is None:
        return after, [secondary.new(work.key, work.target, kind)]
    return after, [secondary.judge_exact(work.key, work.target, kind, before, after, work.request.measure[kind])]


def _accuracy(work: TimedWorkload) -> float:
    """The error of one run, by the test's ``accuracy=``."""
    request = work.request
    request.run()
    work.run.device.synchronize()
    answer = request.accuracy() if request.accuracy is not None else None
    error = number_of(answer)
    if not 0 <= error < math.inf:
        why = f"accuracy= returned {answer!r}, and not a finite number from 0 on"
        raise WrongResult(f"{request.name}: {why}: return an error of the result, and let check= refuse NaN")
    return error


def _memory(work: TimedWorkload) -> int:
    """Bytes that one run allocates, and those of a launch's arrays."""
    request = work.request
    request.restore()
    arrays = array_bytes(request.launch) if request.launch is not None else 0
    return arrays + work.run.device.bytes_of(request.workload)


def array_bytes(launch: Launch) -> int:
    """Bytes of the arrays that a launch is given, each address counted once; a bare number is no array."""
    sizes: dict[tuple[int | None, int], int] = {}
    for place, argument in enumerate(launch.arguments):
        if (facts := array_facts(argument)) is not None:
            array = facts.address, place if facts.address is None else 0  # a host's has none, in simulations
            sizes[array] = max(sizes.get(array, 0), facts.dtype.itemsize * math.prod(facts.shape))
    return sum(sizes.values())


def _host(work: TimedWorkload) -> tuple[HostTime, list[Judgement]]:
    """Relative to fixed work, judged where this process gates.  A change waits for a second process."""
    request, device, task, key, target = work.request, work.run.device, work.run.options.task, work.key, work.target
    record = _on_record(work).host
    now = host_time(
        request.workload, request.reset, device.synchronize, work.expected_ns(), driver=device.facts.driver,
        budget_s=request.budget_s,
    )  # fmt: skip
    if isinstance(task, ConfirmTask) and record is not None:
        time_ns = secondary.as_on_record(record, now)
        write_result(task, Confirmation(key=key, kind="host", identity=work.identity, time_ns=time_ns))
    if not _gates(work):
        return now, []
    if record is None:
        return now, [secondary.new(key, target, "host")]
    if (incomparable := secondary.incomparable(key, target, record, now)) is not None:
        return now, [incomparable]

    def final_verdict(found: Sequence[Confirmation]) -> Judgement:
        after_ns, second_ns = secondary.as_on_record(record, now), found[0].time_ns if found else None
        return secondary.judge_host(key, target, record.time_ns, after_ns, request.measure["host"], second_ns)

    judgement = final_verdict(())
    if judgement.verdict in (Verdict.WORSE, Verdict.BETTER):
        work.run.suspects.append(Suspect(judgement, work.identity, final_verdict, request.budget_s))
    return now, [judgement]
