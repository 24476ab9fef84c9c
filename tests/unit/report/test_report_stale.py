"""What is told of workloads that are better than their baselines."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.report.remarks import stale_lines


def told(*workloads: tuple[tuple[EvidenceKind, Verdict], ...], repeated: Sequence[str] = ()) -> list[str]:
    """The lines of a test with these workloads, each with its judgements."""
    found = []
    for number, judged in enumerate(workloads):
        key = Key(module="test_a.py", test="test_a", workload=f"copy {number}")
        judgements = tuple(Judgement(key=key, target="t", kind=kind, verdict=verdict) for kind, verdict in judged)
        found.append(WorkloadEvidence(key=key, judgements=judgements))
    return stale_lines([TestEvidence(module="test_a.py", test="test_a", workloads=tuple(found))], repeated)


def test_a_workload_that_is_better_in_two_ways_counts_once() -> None:
    (line,) = told((("static", Verdict.BETTER), ("time", Verdict.FASTER)), (("time", Verdict.SAME),))
    assert line.startswith(
        "1 workload is FASTER or BETTER than on record: the baseline is stale: accept the gain with "
    )
    assert "pytest --update-baselines," in line


def test_better_counters_take_an_update_that_counts() -> None:
    (line,) = told((("counters", Verdict.BETTER),))
    assert "pytest --gpuperf-ncu --update-baselines," in line


def test_a_gain_is_accepted_into_the_baselines_that_were_read() -> None:
    (line,) = told((("static", Verdict.BETTER),), repeated=("--rootdir=sub", "--gpuperf-baselines=my perf"))
    assert "with pytest --update-baselines --rootdir=sub '--gpuperf-baselines=my perf', or " in line


def test_what_is_worse_as_well_is_no_gain_to_accept() -> None:
    assert told((("static", Verdict.BETTER), ("time", Verdict.SLOWER))) == []


def test_without_a_gain_there_is_nothing_to_tell() -> None:
    assert told((("static", Verdict.UNCHANGED), ("time", Verdict.SAME))) == []
