"""What is told of kernels that changed and did not fail."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.closing import next_steps
from pytest_gpuperf.report.remarks import LEAST_GAIN, hints

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")


def told(verdict: Verdict = Verdict.SAME, **figures: Any) -> list[str]:
    known = {"cause": "bank conflicts", "evidence": (), "gain": 0.2, "arch": "sm_90"}
    judged = Judgement(key=KEY, target="sm_90", kind="static", verdict=verdict)
    work = WorkloadEvidence(key=KEY, judgements=(judged,), advice=(Advice(**{**known, **figures}),))
    return hints([TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))])


def test_a_likely_cause_is_told_with_its_gain_and_what_says_more() -> None:
    assert told() == [
        "suite/test_a.py::test_a [copy]: the machine code changed, and nothing that gates got worse; likely bank "
        "conflicts on sm_90 (gain about 20 %, by the machine code): gpuperf explain suite/test_a.py::test_a"
    ]


def test_what_a_line_says_to_type_is_one_word_to_a_shell_whatever_the_test_is_called() -> None:
    key = msgspec.structs.replace(KEY, test="test_a[it's $(date)]")
    advice = (Advice(cause="bank conflicts", evidence=(), gain=0.2, arch="sm_90"),)
    judged = [Judgement(key=key, target="sm_90", kind="static", verdict=one) for one in (Verdict.SAME, Verdict.WORSE)]
    works = [WorkloadEvidence(key=key, judgements=(one,), advice=advice) for one in judged]
    passed, red = ([TestEvidence(module=key.module, test=key.test, workloads=(work,))] for work in works)
    for line in (*hints(passed), *next_steps(red, Options())):
        command = line[line.index("gpuperf explain") :].partition("; fix it")[0]
        assert shlex.split(command) == ["gpuperf", "explain", key.node_id]


@pytest.mark.parametrize(
    ("kind", "options", "again", "accept"),
    [
        ("static", {"enabled": True}, "pytest --gpuperf --lf", "pytest --update-baselines"),
        ("time", {"enabled": True}, "pytest --gpuperf --lf", "pytest --update-baselines"),
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
def test_what_is_run_again_is_judged_as_it_was(kind: Any, options: dict[str, Any], again: str, accept: str) -> None:
    judged = Judgement(key=KEY, target="sm_90", kind=kind, verdict=Verdict.WORSE)
    work = WorkloadEvidence(key=KEY, judgements=(judged,))
    (line,) = next_steps([TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))], Options(**options))
    words = f"; accept an intended change: {accept}" if accept else ""
    assert line.partition("; fix it, and run ")[2] == f"{again}{words}"


def test_an_undecided_workload_is_not_said_to_be_no_worse() -> None:
    (line,) = told(Verdict.INCONCLUSIVE)
    assert "the machine code changed, and its verdict is open; likely bank conflicts" in line


@pytest.mark.parametrize(
    "figures",
    [
        {"gain": LEAST_GAIN * 0.99},
        {"counted": True},
        {"same_code": True},
        {"outweighed": True},
        {"verdict": Verdict.WORSE},
    ],
)
def test_what_is_small_or_counted_or_outweighed_or_of_unchanged_code_or_red_is_not_told_of(
    figures: dict[str, Any],
) -> None:
    assert told(**figures) == []


def test_every_likely_cause_has_its_line() -> None:
    causes = [Advice(cause=cause, evidence=(), gain=0.3, arch="sm_80") for cause in ("divergence", "bank conflicts")]
    work = WorkloadEvidence(key=KEY, advice=tuple(causes))
    assert len(hints([TestEvidence(module=KEY.module, test=KEY.test, workloads=(work, work))])) == 4
