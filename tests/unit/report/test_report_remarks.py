"""Remarks at the end of a run, likely causes, and the next steps."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.document import rows_of
from pytest_gpuperf.report.message import LEAST_GAIN, hints_of
from pytest_gpuperf.report.remarks import next_steps, stale_lines

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
STATIC = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.SAME)


def work(verdict: Verdict = Verdict.SAME, key: Key = KEY, **figures: Any) -> WorkloadEvidence:
    known = {"cause": "bank conflicts", "evidence": (), "gain": 0.2, "arch": "sm_90"}
    judged = msgspec.structs.replace(STATIC, key=key, verdict=verdict)
    return WorkloadEvidence(key=key, judgements=(judged,), advice=(Advice(**{**known, **figures}),))


def evidence(*works: WorkloadEvidence, **fields: Any) -> list[TestEvidence]:
    return [TestEvidence(module=KEY.module, test=KEY.test, workloads=works, **fields)]


def test_likely_cause_has_its_gain_and_a_command_of_one_word_to_a_shell() -> None:
    key = msgspec.structs.replace(KEY, test="test_a[it's $(date)]")
    for verdict, result in ((Verdict.SAME, "no gated metric regressed"), (Verdict.INCONCLUSIVE, "the verdict is open")):
        (line,) = hints_of(work(verdict, key))
        words, _, command = line.partition(": ")
        assert words == (
            f"the machine code changed, {result}; likely bank conflicts on sm_90 (gain about 20 %, by the machine code)"
        )
        assert shlex.split(command) == ["gpuperf", "explain", key.node_id]
    (step,) = next_steps(rows_of(evidence(work(Verdict.WORSE, key))), Options())
    command = step[step.index("gpuperf explain") :].partition("; fix it")[0]
    assert shlex.split(command) == ["gpuperf", "explain", key.node_id]


@pytest.mark.parametrize(
    "figures",
    [{"gain": LEAST_GAIN * 0.99}, {"counted": True}, {"same_code": True}, {"outweighed": True},
     {"verdict": Verdict.WORSE}],
)  # fmt: skip
def test_cause_that_is_no_news_is_left_out(figures: dict[str, Any]) -> None:
    assert hints_of(work(**figures)) == []


@pytest.mark.parametrize(
    ("kind", "options", "again", "accept"),
    [
        ("static", {"enabled": True}, "pytest --gpuperf --lf", "pytest --update-baselines"),
        ("static", {"enabled": True, "against": "merge-base:main"},
         "pytest --gpuperf --gpuperf-against=merge-base:main --lf", ""),
        ("counters", {"enabled": True, "ncu": ("default", "a.sum")},
         "pytest --gpuperf --gpuperf-ncu=default,a.sum --lf", "pytest --gpuperf-ncu --update-baselines"),
        ("counters", {"enabled": False, "ncu": ("memory",)},
         "pytest --gpuperf-ncu=memory --lf", "pytest --gpuperf-ncu --update-baselines"),
        ("time", {"enabled": True, "repeated": ("--gpuperf-arch=sm_80", "--gpuperf-baselines=my perf")},
         "pytest --gpuperf --gpuperf-arch=sm_80 '--gpuperf-baselines=my perf' --lf",
         "pytest --update-baselines --gpuperf-arch=sm_80 '--gpuperf-baselines=my perf'"),
    ],
)  # fmt: skip
def test_next_step_judges_as_this_run_did(kind: Any, options: dict[str, Any], again: str, accept: str) -> None:
    judged = Judgement(key=KEY, target="sm_90", kind=kind, verdict=Verdict.WORSE)
    rows = rows_of(evidence(WorkloadEvidence(key=KEY, judgements=(judged,))))
    (line,) = next_steps(rows, Options(**options))
    words = f"; accept an intended change: {accept}" if accept else ""
    assert line.partition("; fix it, and run ")[2] == f"{again}{words}"


def test_new_workloads_are_counted_with_the_command_that_records_them() -> None:
    rows = rows_of(evidence(work(Verdict.NEW), work(Verdict.NEW, msgspec.structs.replace(KEY, workload="other"))))
    assert next_steps(rows, Options(repeated=("--gpuperf-baselines=perf",))) == [
        "next: record 2 new workloads: pytest --update-baselines=new --gpuperf-baselines=perf, and commit the files"
    ]
    assert next_steps(rows, Options(against="main")) == ["2 new workloads without a counterpart in main"]


def stale(*workloads: tuple[tuple[Any, Verdict], ...], repeated: tuple[str, ...] = ()) -> list[str]:
    found = []
    for number, judged in enumerate(workloads):
        key = msgspec.structs.replace(KEY, workload=f"copy {number}")
        judgements = tuple(Judgement(key=key, target="t", kind=kind, verdict=verdict) for kind, verdict in judged)
        found.append(WorkloadEvidence(key=key, judgements=judgements))
    return stale_lines(evidence(*found), repeated)


def test_stale_baselines_have_one_line_with_its_command() -> None:
    (line,) = stale((("static", Verdict.BETTER), ("time", Verdict.FASTER)), (("time", Verdict.SAME),))
    assert line.startswith("1 workload is FASTER or BETTER than the baseline: the baseline is stale: accept the gain ")
    assert "pytest --update-baselines," in line
    (line,) = stale((("counters", Verdict.BETTER),), repeated=("--gpuperf-baselines=my perf",))
    assert "with pytest --gpuperf-ncu --update-baselines '--gpuperf-baselines=my perf', or " in line
    assert stale((("static", Verdict.BETTER), ("time", Verdict.SLOWER))) == []
    assert stale((("static", Verdict.UNCHANGED), ("time", Verdict.SAME))) == []
