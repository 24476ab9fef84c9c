"""Which anchor a newly recorded time gets, and which tests an update is asked for by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.evidence import Identity, Key, Session, TimeRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.model.verdict import Drift, Judgement, TimeFigures, Verdict
from pytest_gpuperf.update.anchor import accepts_drift, become_anchors, with_anchor
from pytest_gpuperf.update.modes import by_name

KEY = Key(module="test_a.py", test="test_copy[8]", workload="copy")
SESSION = Session(
    id="s1", date="2026-11-20T10:00:00Z", gpu="NVIDIA H200", uuid="GPU-1", driver="580.1", cuda="13.0",
    toolchain="nvrtc 13.0.88", cupy="14.2", timer="cupti", tick_ns=32.0, overhead_ns=0.0,
)  # fmt: skip
CHANGED, ANCHORED = Options(update="changed"), Options(update="anchor")


def record(code: str, midmean: float = 50e3, **fields: Any) -> TimeRecord:
    one = Round(
        session="s1", process=0, samples=40, midmean=midmean, median=midmean, quantiles=(midmean,) * 5,
        minimum=midmean, maximum=midmean,
    )  # fmt: skip
    identity = Identity(code=code, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0", arguments=("float32[8]",))
    return TimeRecord(**{"identity": identity, "timer": "cupti", "cache": "cold", "rounds": (one,), "cubin": code * 32,
                         **fields})  # fmt: skip


def judged(verdict: Verdict, ratio: float | None = None, drift: Drift | None = None, **figures: Any) -> Judgement:
    time = None if ratio is None else TimeFigures(ratio=ratio, **{"method": "paired", **figures})
    return Judgement(key=KEY, target="nvidia-h200", kind="time", verdict=verdict, time=time, drift=drift)


def red(verdict: Verdict = Verdict.SLOWER) -> Judgement:
    return Judgement(key=KEY, target="nvidia-h200", kind="time", verdict=verdict, against="anchor")


def drift(ratio: float, *, proven: bool = True) -> Drift:
    return Drift(date=SESSION.date, steps=1, tolerance=0.005, ratio=ratio, proven=proven)


def found(*judgements: Judgement) -> WorkloadEvidence:
    return WorkloadEvidence(key=KEY, judgements=judgements)


def anchored(
    new: TimeRecord, old: TimeRecord | None, work: WorkloadEvidence, options: Options = CHANGED, *, cubin: bool = True
) -> TimeRecord:
    return with_anchor(new, old, work, {"s1": SESSION}, lambda _: cubin, options)


def test_the_first_record_and_one_accepted_on_purpose_are_their_own_anchors() -> None:
    slower = found(judged(Verdict.SLOWER, 1.03))
    assert anchored(record("b1"), None, found(judged(Verdict.NEW))).anchor is None
    assert anchored(record("b1"), record("a0"), slower, ANCHORED).anchor is None
    assert anchored(record("b1"), record("a0"), slower).anchor is not None


def test_the_record_that_was_there_becomes_the_anchor_of_the_next_with_all_that_runs_it_again() -> None:
    old = record("a0", grid=(4, 1, 1), block=(64, 1, 1), dynamic_shared_bytes=16, kernel="copy", symbol="_Z4copy")
    anchor = anchored(record("b1"), old, found(judged(Verdict.SLOWER, 1.03))).anchor
    assert anchor is not None
    assert anchor.as_record() == msgspec.structs.replace(old, rounds=())
    assert (anchor.time_ns, anchor.session, anchor.date) == (pytest.approx(50e3), "s1", SESSION.date)
    assert (anchor.steps, anchor.ratio, anchor.proven) == (1, 1.03, True)
    lost = anchored(record("b1"), old, found(judged(Verdict.SLOWER, 1.03)), cubin=False).anchor
    assert lost is not None
    assert lost.cubin == ""


@pytest.mark.parametrize(
    ("judgements", "ratio", "proven"),
    [
        ((judged(Verdict.SAME, 1.004, drift(1.012)), red()), 1.012, True),
        ((judged(Verdict.SAME, 1.004, drift(1.012)), red(Verdict.INCONCLUSIVE)), 1.012, False),
        ((judged(Verdict.SAME, 1.004, drift(1.008)),), 1.008, True),
        ((judged(Verdict.SLOWER, 1.02, drift(1.03, proven=False)),), 1.03, False),
        ((judged(Verdict.SLOWER, 1.06, drift(1.07, proven=False), method="unpaired"),), 1.07, True),
        ((judged(Verdict.NOT_COMPARABLE),), None, False),
    ],
)  # fmt: skip
def test_the_anchor_stays_through_later_steps_with_the_drift_as_it_was_measured(
    judgements: tuple[Judgement, ...], ratio: float | None, proven: bool
) -> None:
    first = anchored(record("b1"), record("a0"), found(judged(Verdict.SAME, 1.004)))
    anchor = anchored(record("c2"), first, found(*judgements)).anchor
    assert anchor is not None
    assert anchor.identity == record("a0").identity
    assert (anchor.steps, anchor.ratio, anchor.proven) == (2, ratio, proven)


def test_the_same_code_keeps_its_anchor_and_the_anchor_s_code_has_none() -> None:
    first = anchored(record("b1"), record("a0"), found(judged(Verdict.SLOWER, 1.03)))
    assert anchored(record("b1"), first, found(judged(Verdict.UNCHANGED))).anchor == first.anchor
    assert anchored(record("a0"), first, found(judged(Verdict.FASTER, 0.97))).anchor is None


def test_other_work_that_could_not_be_paired_with_the_anchor_s_is_its_own() -> None:
    other = Identity(code="b1", launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0", arguments=("float32[16]",))
    new = msgspec.structs.replace(record("b1"), identity=other)
    assert anchored(new, record("a0"), found(judged(Verdict.NOT_COMPARABLE))).anchor is None
    paired = anchored(new, record("a0"), found(judged(Verdict.SLOWER, 2.0))).anchor
    assert paired is not None
    assert paired.ratio == 2.0


def test_on_purpose_takes_what_has_drifted_and_leaves_what_has_not() -> None:
    far, near = judged(Verdict.UNCHANGED, drift=drift(1.03)), judged(Verdict.UNCHANGED, drift=drift(1.004))
    changed = judged(Verdict.SAME, 1.002, drift(1.008))

    def moved(work: WorkloadEvidence, options: Options = ANCHORED) -> int:
        return len(become_anchors([TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))], options))

    assert [moved(found(one)) for one in (far, near, changed)] == [1, 0, 0]
    assert [accepts_drift(found(one), ANCHORED) for one in (far, near, changed)] == [False, False, True]
    assert (moved(found(far), CHANGED), accepts_drift(found(changed), CHANGED)) == (0, False)


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
    assert by_name(KEY.node_id, Options(update="changed", named=(named,))) is is_named
    assert not by_name(KEY.node_id, Options(update="new", named=(named,)))
    assert not by_name(KEY.node_id, Options(named=(named,)))
