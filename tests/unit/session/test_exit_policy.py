"""Which verdicts fail their test under which options, and the words of a failed gate."""

from __future__ import annotations

from typing import Any

import pytest
from run_samples import judgement, key

from pytest_gpuperf.model.verdict import Advice, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.session.exit_policy import POLICY, Effect, effect, failure_message, failures, missing_fails
from pytest_gpuperf.update import takes

ACCEPT = "If this change is intended: pytest --update-baselines, and commit what it writes."
RECORD = "no baseline yet: record one with pytest --update-baselines=new and commit it"


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
FLAGS: tuple[dict[str, Any], ...] = (
    {"strict": True}, {"undecided": "fail"}, {"open": "fail"},
)  # fmt: skip


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


def test_a_workload_that_a_revision_lacks_is_no_open_question() -> None:
    assert effect(judgement(Verdict.NEW), Options(open="fail", undecided="fail", against="main")) is WARN


def test_counters_that_are_not_there_are_never_red() -> None:
    for kind, outcome in (("counters", False), ("static", True), ("time", True)):
        assert (effect(judgement(Verdict.NOT_MEASURED, kind), CI) is FAIL) is outcome  # type: ignore[arg-type]


def recorded(**options: Any) -> set[Verdict]:
    return {verdict for verdict in Verdict if takes(judgement(verdict), Options(**options))}


def test_an_update_records_what_its_mode_says_and_never_what_was_not_measured() -> None:
    everything = set(Verdict) - {Verdict.NOT_MEASURED}
    passed = {Verdict.UNCHANGED, Verdict.SAME}
    open_ones = {Verdict.INCONCLUSIVE}
    assert recorded() == set()
    assert recorded(update="new") == {Verdict.NEW}
    assert recorded(update="changed") == everything - passed - open_ones
    assert recorded(update="all") == everything


def test_failures_are_what_fails_and_will_not_be_recorded() -> None:
    found = [judgement(Verdict.SLOWER), judgement(Verdict.NEW, workload="other"), judgement(Verdict.SAME)]
    assert failures(found, Options()) == found[:1]
    assert failures(found, Options(open="fail")) == found[:2]
    assert failures(found, Options(open="fail", update="new")) == found[:1]
    assert failures(found, Options(open="fail", update="all")) == []


def test_a_message_has_the_lines_of_each_workload_and_says_once_how_to_accept_it() -> None:
    slower, worse = judgement(Verdict.SLOWER), judgement(Verdict.WORSE, "static")
    other = judgement(Verdict.SLOWER, workload="other")
    assert failure_message([slower, other, worse]).splitlines() == [
        *workload_lines([slower, worse], ()), *workload_lines([other], ()), ACCEPT
    ]  # fmt: skip
    assert failure_message([worse]).splitlines()[-1] == ACCEPT


def test_causes_stand_with_the_workload_that_they_are_of() -> None:
    cause = Advice(cause="bank conflicts", evidence=(), gain=0.4)
    slower, other = judgement(Verdict.SLOWER), judgement(Verdict.SLOWER, workload="other")
    text = failure_message([slower, other], {key("other"): (cause,)})
    assert text.splitlines() == [*workload_lines([slower], ()), *workload_lines([other], [cause]), ACCEPT]
    assert workload_lines([other], [cause]) != workload_lines([other], ())


@pytest.mark.parametrize(("verdict", "words"), [(Verdict.WORSE, ACCEPT), (Verdict.NEW, RECORD)])
def test_an_update_of_counters_is_told_to_take_them(verdict: Verdict, words: str) -> None:
    found = failure_message([judgement(verdict, "counters")])
    assert found.endswith(words.replace("pytest", "pytest --gpuperf-ncu"))


@pytest.mark.parametrize(
    ("verdict", "reason", "words"),
    [
        (Verdict.NEW, "", [RECORD]),
        (Verdict.INCONCLUSIVE, "the clock moved", []),
        (Verdict.NOT_MEASURED, "", []),
    ],
)
def test_a_verdict_that_is_no_regression_says_what_to_do(verdict: Verdict, reason: str, words: list[str]) -> None:
    found = [judgement(verdict, reason=reason), judgement(verdict, workload="other", reason=reason)]
    lines = [line for one in found for line in workload_lines([one], ())]
    assert failure_message(found).splitlines() == [*lines, *words]


@pytest.mark.parametrize("verdict", [Verdict.FASTER, Verdict.BETTER])
def test_a_stale_baseline_says_how_to_take_the_gain(verdict: Verdict) -> None:
    last = failure_message([judgement(verdict)]).splitlines()[-1]
    assert last.startswith("the baseline is stale: accept the gain with pytest --update-baselines, or ")
    last = failure_message([judgement(verdict)], repeated=["--gpuperf-baselines=my perf"]).splitlines()[-1]
    assert "with pytest --update-baselines '--gpuperf-baselines=my perf', or " in last


def test_against_a_revision_nothing_is_to_be_recorded() -> None:
    found = [judgement(Verdict.SLOWER), judgement(Verdict.NEW, workload="other")]
    lines = [line for one in found for line in workload_lines([one], ())]
    told = failure_message(found, revision="c0 (yesterday)").splitlines()
    assert told == [*lines, "Compared with c0 (yesterday); a baseline would keep what is intended."]


def test_a_renamed_workload_has_its_remedy_in_its_reason() -> None:
    renamed = judgement(Verdict.NEW, reason="was test_old: run `gpuperf baselines mv`", renamed=True)
    assert failure_message([renamed]).splitlines() == workload_lines([renamed], ())


def test_a_missing_record_is_red_as_the_policy_says() -> None:
    for options, missing, without_gpu in (
        (LOCAL, False, False), (CI, True, False), (Options(open="fail", undecided="fail"), True, True)
    ):  # fmt: skip
        assert (missing_fails(options), missing_fails(options, needs_gpu=True)) == (missing, without_gpu)
