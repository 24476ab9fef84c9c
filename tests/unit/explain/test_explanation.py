"""One workload explained."""

from __future__ import annotations

from pathlib import Path

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.explain.explanation import explain_all, explained
from pytest_gpuperf.model.advice import Advice, State
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.message import WIDTH

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
TIMED = Side(arch="sm_90", time_ns=1e6, bytes=3_600_000_000)


def joined(lines: list[str]) -> str:
    assert all(len(line) <= WIDTH for line in lines)
    return " ".join(" ".join(lines).split())


def told(folder: Path, work: WorkloadEvidence) -> str:
    test = TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))
    return joined(list(explain_all(BaselineStore(folder), [(test, work)], None)))


def test_state_roofline_and_figures() -> None:
    state = State(bound="memory", why="90% of the measured copy bandwidth", roofline=0.9)
    found = joined(explained(KEY, TIMED, state))
    for words in ("suite/test_a.py::test_a [copy]", "state: memory bound: 90% of the measured copy bandwidth",
                  "roofline: 90%", "figures: time 1 ms, 3.6 TB/s"):  # fmt: skip
        assert words in found
    assert "baseline:" not in found
    assert "cause:" not in found


def test_what_is_missing_is_said() -> None:
    found = joined(explained(KEY, Side(arch="sm_90"), None))
    assert "state: unknown: without counters (--gpuperf-ncu=full) it takes a time on a GPU" in found
    assert "figures: none" in found
    state = State(bound="latency", why="SM 20% and memory 31% of what they could do")
    assert "roofline: unknown: it takes a time on a GPU" in joined(explained(KEY, TIMED, state))


def test_causes_and_verdicts_that_tell_something_are_told(tmp_path: Path) -> None:
    same = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.SAME, reason="nothing that gates")
    unchanged = Judgement(key=KEY, target="sm_80", kind="static", verdict=Verdict.UNCHANGED)
    one = Advice(cause="bank conflicts", evidence=(), gain=0.2, counted=True)
    found = told(tmp_path, WorkloadEvidence(key=KEY, judgements=(unchanged, same), advice=(one,)))
    assert "baseline: none for this workload: record one with pytest --update-baselines" in found
    assert "copy SAME on sm_90 (static) nothing that gates" in found
    assert "UNCHANGED" not in found
    assert "cause: bank conflicts" in found
    assert "cause: none can be named without a baseline" in told(tmp_path, WorkloadEvidence(key=KEY))
