"""What an update takes of a run: times, the counters beside them, and secondary metrics; and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from record_samples import identity_of, time_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded, WorkloadEvidence
from pytest_gpuperf.model.time_record import HostTime, SecondaryMetrics, TimeRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.update import recorded_time

KEY = Key(module="test_a.py", test="test_a", workload="work")
GPU = "nvidia-h200"
NEW, CHANGED, ALL = (Options(update=mode) for mode in ("new", "changed", "all"))
OLD = HostTime(ratios=(0.4,), time_ns=800.0, cpu="c", made_by="p")
FOUND = SecondaryMetrics(memory_bytes=2048, accuracy=1.5, host=msgspec.structs.replace(OLD, ratios=(0.5,)))
OTHER = identity_of(code="c1" * 32)
NO_TIME = "it has no recorded time: record that first, on a machine with a GPU"


def taken(options: Options, before: TimeRecord | None = None, /, **judged: Any) -> Recorded | None:
    """What an update records of a workload: its verdicts by their kinds, and its evidence."""
    verdicts = {name: one for name, one in judged.items() if isinstance(one, Verdict)}
    judgements = tuple(
        Judgement(key=KEY, target=GPU, kind=kind, verdict=one)
        for kind, one in verdicts.items()  # type: ignore[arg-type]
    )
    fields = {name.removesuffix("_"): one for name, one in judged.items() if name not in verdicts}
    return recorded_time(WorkloadEvidence(key=KEY, judgements=judgements, **fields), GPU, None, before, options)


def record(found: Recorded | None) -> TimeRecord:
    assert found is not None
    assert isinstance(found.after, TimeRecord)
    return found.after


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "modes"), [
    (Verdict.NEW, {"new", "changed", "all"}), (Verdict.SLOWER, {"changed", "all"}), (Verdict.SAME, {"all"}),
    (Verdict.INCONCLUSIVE, {"all"}), (Verdict.NOT_COMPARABLE, {"changed", "all"}),
])  # fmt: skip
def test_time_is_taken_by_its_verdict(verdict: Verdict, modes: set[str]) -> None:
    for options in (NEW, CHANGED, ALL):
        found = taken(options, time=verdict, time_=time_of(5000.0))
        assert found == (Recorded(key=KEY, target=GPU, after=time_of(5000.0)) if options.update in modes else None)


def test_what_was_not_timed_or_judged_is_not_taken() -> None:
    assert taken(ALL, time=Verdict.NEW) is None
    assert taken(ALL, static=Verdict.NEW, time_=time_of()) is None
    assert taken(Options(), time=Verdict.NEW, time_=time_of()) is None


def test_disturbed_time_is_refused_unless_it_is_forced() -> None:
    run: dict[str, Any] = {"time": Verdict.NEW, "time_": time_of(), "disturbances": ("power cap", "another process")}
    words = "power cap; another process; --gpuperf-disturbed records it all the same"
    assert taken(NEW, **run) == Recorded(key=KEY, target=GPU, refused=words)
    assert record(taken(Options(update="new", disturbed=True), **run)) == time_of()


@pytest.mark.parametrize(
    ("new", "stay"),
    [({}, True), ({"timer": "graph"}, True), ({"cache": "warm"}, False), ({"identity": OTHER}, False)],
    ids=["equal work", "another timer", "another cache", "other code"],
)
def test_new_time_keeps_counters_of_equal_work_and_figures(new: dict[str, Any], stay: bool) -> None:
    secondary = SecondaryMetrics(memory_bytes=1024, host=OLD)
    before = time_of(counters={"dram": 5.0, "inst": 6.0}, counter_ranges={"dram": (4.0, 6.0)}, secondary=secondary)
    time = msgspec.structs.replace(time_of(5000.0), **new)
    found = record(taken(CHANGED, before, time=Verdict.SLOWER, time_=time, counters={"inst": 7.0}))
    assert (found.rounds, found.secondary) == (time_of(5000.0).rounds, secondary)
    assert found.counters == ({"dram": 5.0, "inst": 7.0} if stay else {"inst": 7.0})
    assert found.counter_ranges == ({"dram": (4.0, 6.0)} if stay else {})


# --- counters alone ------------------------------------------------------------------------------


def counted(options: Options, before: TimeRecord | None, **fields: Any) -> Recorded | None:
    found = {"identity": identity_of(), "counters": {"dram": 512.0}, **fields}
    return taken(options, before, counters=Verdict.WORSE, **{f"{name}_": one for name, one in found.items()})


def test_counters_are_put_on_a_record_of_the_same_code() -> None:
    before = time_of(counters={"dram": 64.0, "sm": 1.0})
    found = record(counted(CHANGED, before))
    assert (found.counters, found.rounds) == ({"dram": 512.0, "sm": 1.0}, before.rounds)
    assert counted(NEW, before) is None  # nothing that the record lacks
    assert record(counted(NEW, time_of(counters={"sm": 1.0}))).counters == {"dram": 512.0, "sm": 1.0}


@pytest.mark.parametrize(("fields", "why"), [
    ({"identity": OTHER}, "the recorded time is of other code"),
    ({"identity": None}, "the recorded time is of other code"),
    ({"time": msgspec.structs.replace(time_of(), cache="warm")}, "the recorded time is of a cold L2"),
])  # fmt: skip
def test_counters_of_other_work_are_refused(fields: dict[str, Any], why: str) -> None:
    found = counted(CHANGED, time_of(), **fields)
    assert found is not None
    assert (found.after, found.refused) == (None, f"{why}: --update-baselines=all records its time as well")
    assert counted(NEW, time_of(), **fields) is None


def test_counters_need_a_time_on_record() -> None:
    assert counted(CHANGED, None) == Recorded(key=KEY, target=GPU, refused=NO_TIME)


# --- secondary metrics ---------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "recorded"), [
    (NEW, SecondaryMetrics(memory_bytes=1024, accuracy=1.5, host=OLD)),
    (CHANGED, SecondaryMetrics(memory_bytes=2048, accuracy=1.5, host=OLD)), (ALL, FOUND),
])  # fmt: skip
def test_secondary_metrics_are_taken_by_their_verdicts(options: Options, recorded: SecondaryMetrics) -> None:
    run: dict[str, Any] = {"memory": Verdict.WORSE, "accuracy": Verdict.NEW, "host": Verdict.SAME, "secondary": FOUND}
    before = time_of(secondary=SecondaryMetrics(memory_bytes=1024, accuracy=1.0, host=OLD))
    assert record(taken(options, before, **run)) == time_of(secondary=recorded)
    assert taken(options, **run) == Recorded(key=KEY, target=GPU, refused=NO_TIME)


def test_nothing_is_taken_of_what_the_test_does_not_ask_for() -> None:
    assert taken(ALL, time_of(), memory=Verdict.NOT_MEASURED, secondary=SecondaryMetrics()) is None
