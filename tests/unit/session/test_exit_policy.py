"""Which verdicts fail their test under which options, and the words of a failed gate."""

from __future__ import annotations

from typing import Any

import pytest
from run_samples import judgement, key

from pytest_gpuperf.model.verdict import Advice, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.session.exit_policy import POLICY, Effect, effect, failure_message, failures, missing_fails
from pytest_gpuperf.update import accepts

ACCEPT = "If this change is intended: pytest --update-baselines, and commit what it writes."
RECORD = "no baseline yet: record one with pytest --update-baselines=new and commit it"
STALE = "the baseline is stale: accept the gain with pytest --update-baselines, or an equal loss later goes unnoticed"

LOCAL, CI = Options(), Options(open="fail")
PASS, REMARK, WARN, FAIL = Effect.PASS, Effect.REMARK, Effect.WARN, Effect.FAIL
TABLE = {
    # verdict: local, under CI, and by which option alone it fails
    Verdict.UNCHANGED: (PASS, PASS, {}),
    Verdict.SAME: (PASS, PASS, {}),
    Verdict.FASTER: (REMARK, REMARK, {"strict": True}),
    Verdict.BETTER: (REMARK, REMARK, {"strict": True}),
    Verdict.SLOWER: (FAIL, FAIL, {}),
    Verdict.WORSE: (FAIL, FAIL, {}),
    Verdict.INCONCLUSIVE: (WARN, WARN, {"undecided": "fail"}),
    Verdict.NOT_COMPARABLE: (WARN, FAIL, {"open": "fail"}),
    Verdict.NEW: (WARN, FAIL, {"open": "fail"}),
    Verdict.NOT_MEASURED: (WARN, FAIL, {"open": "fail"}),
}
FLAGS: tuple[dict[str, Any], ...] = ({"strict": True}, {"undecided": "fail"}, {"open": "fail"})


@pytest.mark.parametrize("verdict", Verdict, ids=lambda one: one.value)
def test_each_cell_of_the_policy(verdict: Verdict) -> None:
    assert set(TABLE) == set(POLICY) == set(Verdict)
    local, under_ci, flag = TABLE[verdict]
    assert effect(judgement(verdict), Options(advisory=True)) is not FAIL
    assert effect(judgement(verdict), LOCAL) is local
    assert effect(judgement(verdict), CI) is under_ci
    for given in FLAGS:
        expected = FAIL if given == flag else local
        assert effect(judgement(verdict), Options(**given)) is expected, given
        assert bool(failures([judgement(verdict)], Options(**given))) is (expected is FAIL)


def test_exceptions_from_the_policy() -> None:
    """What a revision lacks is no open question, and counters that are not there are never red."""
    assert effect(judgement(Verdict.NEW), Options(open="fail", undecided="fail", against="main")) is WARN
    for kind, outcome in (("counters", False), ("static", True), ("time", True)):
        assert (effect(judgement(Verdict.NOT_MEASURED, kind), CI) is FAIL) is outcome  # type: ignore[arg-type]
    for options, missing, without_gpu in (
        (LOCAL, False, False), (CI, True, False), (Options(open="fail", undecided="fail"), True, True)
    ):  # fmt: skip
        assert (missing_fails(options), missing_fails(options, needs_gpu=True)) == (missing, without_gpu)


def test_update_records_by_its_mode_and_fails_nothing_that_it_records() -> None:
    everything = set(Verdict) - {Verdict.NOT_MEASURED}
    changed = everything - {Verdict.UNCHANGED, Verdict.SAME, Verdict.INCONCLUSIVE}
    for mode, verdicts in ((None, set()), ("new", {Verdict.NEW}), ("changed", changed), ("all", everything)):
        options = Options(update=mode)  # type: ignore[arg-type]
        assert {verdict for verdict in Verdict if accepts(judgement(verdict), options)} == verdicts
    found = [judgement(Verdict.SLOWER), judgement(Verdict.NEW, workload="other"), judgement(Verdict.SAME)]
    assert failures(found, LOCAL) == failures(found, Options(open="fail", update="new")) == found[:1]
    assert failures(found, CI) == found[:2]
    assert failures(found, Options(open="fail", update="all")) == []


# --- messages ------------------------------------------------------------------------------------


def test_message_has_the_lines_of_each_workload_its_causes_and_how_to_accept_it() -> None:
    slower, worse = judgement(Verdict.SLOWER), judgement(Verdict.WORSE, "static")
    other, cause = judgement(Verdict.SLOWER, workload="other"), Advice(cause="bank conflicts", evidence=(), gain=0.4)
    text = failure_message([slower, other, worse], {key("other"): (cause,)})
    assert text.splitlines() == [*workload_lines([slower, worse], ()), *workload_lines([other], [cause]), ACCEPT]
    assert workload_lines([other], [cause]) != workload_lines([other], ())


@pytest.mark.parametrize(("verdict", "kind", "words"), [
    (Verdict.WORSE, "static", [ACCEPT]), (Verdict.NEW, "time", [RECORD]), (Verdict.INCONCLUSIVE, "time", []),
    (Verdict.NOT_MEASURED, "time", []), (Verdict.FASTER, "time", [STALE]), (Verdict.BETTER, "time", [STALE]),
    (Verdict.WORSE, "counters", [ACCEPT.replace("pytest", "pytest --gpuperf-ncu")]),
    (Verdict.NEW, "counters", [RECORD.replace("pytest", "pytest --gpuperf-ncu")]),
])  # fmt: skip
def test_message_says_once_what_to_do(verdict: Verdict, kind: Any, words: list[str]) -> None:
    found = [judgement(verdict, kind), judgement(verdict, kind, workload="other")]
    lines = [line for one in found for line in workload_lines([one], ())]
    assert failure_message(found).splitlines() == [*lines, *words]


def test_message_repeats_flags_and_has_no_remedy_for_what_is_not_to_be_recorded() -> None:
    (*_, last) = failure_message([judgement(Verdict.SLOWER)], repeated=["--gpuperf-baselines=my perf"]).splitlines()
    assert last.startswith("If this change is intended: pytest --update-baselines '--gpuperf-baselines=my perf', and")
    found = [judgement(Verdict.SLOWER), judgement(Verdict.NEW, workload="other")]
    lines = [line for one in found for line in workload_lines([one], ())]
    told = failure_message(found, revision="c0 (yesterday)").splitlines()
    assert told == [*lines, "Compared with c0 (yesterday). To accept an intended change, use committed baselines."]
    renamed = judgement(Verdict.NEW, reason="was test_old: run `gpuperf baselines mv`", renamed=True)
    assert failure_message([renamed]).splitlines() == workload_lines([renamed], ())
