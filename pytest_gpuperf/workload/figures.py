"""Secondary metrics of a workload, measured and judged: device memory, host time, and its error.

They are measured after the time, if the test asks for them, so that they do not disturb it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from pytest_gpuperf.arguments import number_of
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.judge import secondary
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.task import SuspectPlace
from pytest_gpuperf.model.time_record import HostTime, SecondaryMetrics
from pytest_gpuperf.model.verdict import SECONDARY, Judgement, SecondaryKind, Verdict
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.timing.host_time import host_time
from pytest_gpuperf.workload.check import WrongResult
from pytest_gpuperf.workload.confirm_server import send_finding
from pytest_gpuperf.workload.timed_workload import TimedWorkload


def measure_figures(work: TimedWorkload, test: TestRecord) -> None:
    """Measure the requested metrics, and add them to the test's record, judged; the caller holds the GPU's lock.

    Raises ``WrongResult`` for an error that is no number, and what the test's own functions raise.
    """
    evidence, request, baseline = test.workloads[work.request.name], work.request, work.baseline
    recorded = (baseline.secondary if baseline is not None else None) or SecondaryMetrics()
    figures: dict[str, Any] = {}
    judged: list[Judgement] = []
    for kind, field in SECONDARY.items():
        record = getattr(recorded, field)
        if kind in request.measure:
            figures[field] = MEASURED[kind](work)
            judged += _judged(work, test, kind, record, figures[field])
        elif work.run.options.gates and record is not None:  # or it would pass unseen
            judged.append(secondary.not_asked_for(work.key, work.target, kind))
    if figures or judged:
        judgements = (*evidence.judgements, *judged)
        test.add(msgspec.structs.replace(evidence, secondary=SecondaryMetrics(**figures), judgements=judgements))


def _judged(work: TimedWorkload, test: TestRecord, kind: SecondaryKind, record: Any, now: Any) -> Iterator[Judgement]:
    """The verdict where this process gates.  A change of a time waits for a second process."""
    run, key, target = work.run, work.key, work.target
    before, after = (now if record is None else secondary.as_on_record(record, one) for one in (record, now))
    is_time = isinstance(now, HostTime)
    if work.confirms and is_time and record is not None:
        place = SuspectPlace(key=key, kind=kind)
        send_finding(run, Confirmation(place=place, identity=work.identity, time_ns=after))
    if not run.options.gates:
        return
    if record is None:
        yield secondary.new(key, target, kind)
        return
    if kind == "host" and (incomparable := secondary.incomparable(key, target, record, now)) is not None:
        yield incomparable
        return

    def final_verdict(found: Sequence[Confirmation]) -> Judgement:
        second, tolerance = found[0].time_ns if found else None, work.request.measure[kind]
        return secondary.judge(key, target, kind, before, after, tolerance, second)

    judgement = final_verdict(())
    if is_time and judgement.verdict in (Verdict.WORSE, Verdict.BETTER):
        test.suspects.append(Suspect(judgement, work.identity, final_verdict, work.request.budget_s))
    yield judgement


def _accuracy(work: TimedWorkload) -> float:
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


def _host(work: TimedWorkload) -> HostTime:
    request, device = work.request, work.run.device
    return host_time(
        request.workload, request.reset, device.synchronize, work.expected_ns(), driver=device.facts.driver,
        budget_s=request.budget_s,
    )  # fmt: skip


MEASURED: Mapping[SecondaryKind, Callable[[TimedWorkload], Any]] = MappingProxyType(
    {"memory": _memory, "accuracy": _accuracy, "host": _host}
)
