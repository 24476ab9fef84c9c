"""What an update takes of a run: times, the counters beside them, and secondary metrics; and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from record_samples import identity_of, time_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Beside, HostTime, TimeRecord
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.update.select import by_name, recorded_times, with_figures

KEY = Key(module="test_a.py", test="test_a", workload="work")
GPU = "nvidia-h200"
NEW, CHANGED, ALL = (Options(update=mode) for mode in ("new", "changed", "all"))
FOUND = Beside(memory_bytes=2048, accuracy=1.5, host=HostTime(ratios=(0.5,), time_ns=900.0, cpu="c", made_by="p"))
OLD = HostTime(ratios=(0.4,), time_ns=800.0, cpu="c", made_by="p")


def judged(kind: EvidenceKind, verdict: Verdict) -> Judgement:
    return Judgement(key=KEY, target=GPU, kind=kind, verdict=verdict)


def run_of(*judgements: Judgement, **work: Any) -> list[TestEvidence]:
    """A run of one workload, which is judged so."""
    found = WorkloadEvidence(key=KEY, judgements=judgements, **work)
    return [TestEvidence(module=KEY.module, test=KEY.test, workloads=(found,))]


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "taken"), [
    (Verdict.NEW, {"new", "changed", "all"}), (Verdict.SLOWER, {"changed", "all"}), (Verdict.SAME, {"all"}),
    (Verdict.INCONCLUSIVE, {"all"}), (Verdict.NOT_COMPARABLE, {"changed", "all"}),
])  # fmt: skip
def test_a_time_is_taken_by_its_verdict(verdict: Verdict, taken: set[str]) -> None:
    time = time_of(5000.0)
    for options in (NEW, CHANGED, ALL):
        found = recorded_times(run_of(judged("time", verdict), time=time), options)
        assert found == ([Recorded(key=KEY, target=GPU, after=time)] if options.update in taken else [])


def test_what_was_not_timed_or_judged_is_not_taken() -> None:
    assert recorded_times(run_of(judged("time", Verdict.NEW)), ALL) == []
    assert recorded_times(run_of(judged("static", Verdict.NEW), time=time_of()), ALL) == []
    assert recorded_times(run_of(judged("time", Verdict.NEW), time=time_of()), Options()) == []


def test_a_disturbed_time_is_refused_unless_it_is_forced() -> None:
    run = run_of(judged("time", Verdict.NEW), time=time_of(), disturbances=("power cap", "another process"))
    assert recorded_times(run, NEW) == [Recorded(
        key=KEY, target=GPU, refused="power cap; another process; --gpuperf-disturbed records it all the same"
    )]  # fmt: skip
    assert recorded_times(run, Options(update="new", disturbed=True)) == [
        Recorded(key=KEY, target=GPU, after=time_of())
    ]


def test_counters_of_the_run_go_with_its_time() -> None:
    counts = {"counters": {"dram__bytes.sum": 64.0}, "counter_ranges": {"dram__bytes.sum": (60.0, 70.0)}}
    (found,) = recorded_times(run_of(judged("time", Verdict.NEW), time=time_of(), **counts), NEW)
    assert found.after == time_of(counters=counts["counters"], counter_ranges=counts["counter_ranges"])


# --- counters alone ------------------------------------------------------------------------------


def counted(value: float, **fields: Any) -> WorkloadEvidence:
    usual = {"identity": identity_of(), "counters": {"dram__bytes.sum": value}}
    return WorkloadEvidence(key=KEY, judgements=(judged("counters", Verdict.WORSE),), **{**usual, **fields})


def put(before: TimeRecord | None, *, replace: bool, **fields: Any) -> Recorded | None:
    work = counted(512.0, **fields)
    return with_figures(work, CHANGED if replace else NEW, before)


def test_counters_are_put_on_a_record_of_the_same_code() -> None:
    before = time_of(counters={"dram__bytes.sum": 64.0, "sm__cycles.sum": 1.0})
    found = put(before, replace=True)
    assert found is not None
    assert isinstance(found.after, TimeRecord)
    assert found.after.counters == {"dram__bytes.sum": 512.0, "sm__cycles.sum": 1.0}
    assert found.after.rounds == before.rounds
    assert with_figures(counted(512.0), CHANGED, before, timed=True) is None
    assert put(before, replace=False) is None  # nothing that the record lacks
    added = put(time_of(counters={"sm__cycles.sum": 1.0}), replace=False)
    assert added is not None
    assert isinstance(added.after, TimeRecord)
    assert added.after.counters == {"dram__bytes.sum": 512.0, "sm__cycles.sum": 1.0}


@pytest.mark.parametrize(("fields", "why"), [
    ({"identity": identity_of(code="c1" * 32)}, "the code on record is another"),
    ({"identity": None}, "the code on record is another"),
    ({"time": msgspec.structs.replace(time_of(), cache="warm")}, "the time on record is of a cold L2"),
])  # fmt: skip
def test_counters_of_other_work_are_refused(fields: dict[str, Any], why: str) -> None:
    found = put(time_of(), replace=True, **fields)
    assert found is not None
    assert (found.after, found.refused) == (None, f"{why}: --update-baselines=all records its time as well")
    assert put(time_of(), replace=False, **fields) is None


def test_counters_need_a_time_on_record() -> None:
    found = put(None, replace=True)
    assert found is not None
    assert found.refused == "it needs a time on record, and this one has none"


# --- secondary metrics ---------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "taken"), [
    (NEW, Beside(memory_bytes=1024, accuracy=1.5, host=OLD)),
    (CHANGED, Beside(memory_bytes=2048, accuracy=1.5, host=OLD)), (ALL, FOUND),
])  # fmt: skip
def test_secondary_metrics_are_taken_by_their_verdicts(options: Options, taken: Beside) -> None:
    verdicts = judged("memory", Verdict.WORSE), judged("accuracy", Verdict.NEW), judged("host", Verdict.SAME)
    work = WorkloadEvidence(key=KEY, judgements=verdicts, beside=FOUND)
    before = time_of(beside=Beside(memory_bytes=1024, accuracy=1.0, host=OLD))
    found = with_figures(work, options, before)
    assert found is not None
    assert found.after == time_of(beside=taken)
    refused = with_figures(work, options, None)
    assert refused is not None
    assert (refused.after, refused.refused) == (None, "it needs a time on record, and this one has none")


def test_nothing_is_taken_of_what_the_test_does_not_ask_for() -> None:
    verdict = judged("memory", Verdict.NOT_MEASURED)
    work = WorkloadEvidence(key=KEY, judgements=(verdict,), beside=Beside())
    assert with_figures(work, ALL, time_of()) is None


# --- by name -------------------------------------------------------------------------------------

NODE = "test_a.py::test_copy[8]"


@pytest.mark.parametrize(
    ("named", "is_named"),
    [
        ("test_a.py::test_copy[8]", True),
        ("test_a.py::test_copy", True),
        ("test_a.py::test_copy[16]", False),
        ("test_a.py::test_cop", False),
        ("test_a.py", False),
    ],
)
def test_a_test_is_named_by_its_node_id_with_its_parameters_or_without(named: str, is_named: bool) -> None:
    assert by_name(NODE, Options(update="changed", named=(named,))) is is_named
    assert not by_name(NODE, Options(update="new", named=(named,)))
    assert not by_name(NODE, Options(named=(named,)))
