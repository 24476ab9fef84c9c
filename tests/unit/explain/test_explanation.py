"""One workload explained."""

from __future__ import annotations

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.explain.explanation import ComparedWith, explained
from pytest_gpuperf.model.advice import Advice, State
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.message import WIDTH

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
TIMED = Side(arch="sm_90", time_ns=1e6, bytes=3_600_000_000)
SAME_CODE = ComparedWith("the machine code is the same", known=True)


def text(work: WorkloadEvidence, side: Side = TIMED, compared: ComparedWith | None = SAME_CODE) -> str:
    lines = explained(work, side, {}, compared=compared)
    assert all(len(line) <= WIDTH for line in lines)
    return " ".join(" ".join(lines).split())


def test_state_roofline_figures_and_causes() -> None:
    state = State(bound="memory", why="90% of the measured copy bandwidth", roofline=0.9)
    one = Advice(cause="cache hit loss", evidence=(), gain=0.2, counted=True)
    found = text(WorkloadEvidence(key=KEY, state=state, advice=(one,)))
    for words in ("suite/test_a.py::test_a [copy]", "state: memory bound: 90% of the measured copy bandwidth",
                  "roofline: 90%", "figures: time 1 ms, 3.6 TB/s", "baseline: the machine code is the same",
                  "cause: cache hit loss"):  # fmt: skip
        assert words in found


def test_what_is_missing_is_said() -> None:
    found = text(WorkloadEvidence(key=KEY), compared=ComparedWith("none for this workload", known=False))
    assert "state: unknown: no ceiling was measured beside it" in found
    assert "cause: none can be named without a baseline" in found
    state = State(bound="latency", why="SM 20% and memory 31% of what they could do")
    found = text(WorkloadEvidence(key=KEY, state=state))
    assert "roofline: unknown: no ceiling was measured beside it" in found
    assert "cause: none found" in found
    assert "figures: none" in text(WorkloadEvidence(key=KEY), Side(arch="sm_90"))


def test_a_baseline_alone_is_compared_with_nothing() -> None:
    found = text(WorkloadEvidence(key=KEY), compared=None)
    assert "baseline:" not in found
    assert "cause:" not in found


def test_verdicts_that_tell_something_are_told_and_others_are_not() -> None:
    same = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.SAME, reason="nothing that gates")
    unchanged = Judgement(key=KEY, target="sm_80", kind="static", verdict=Verdict.UNCHANGED)
    found = text(WorkloadEvidence(key=KEY, judgements=(unchanged, same)))
    assert "copy SAME on sm_90 (static) nothing that gates" in found
    assert "UNCHANGED" not in found
