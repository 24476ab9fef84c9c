"""Which verdicts fail their test under which options, and the words of a failed gate."""

from __future__ import annotations

from typing import Any

import pytest
from run_samples import judgement, key

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.verdict import UNDECIDED, Verdict
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.session.exit_policy import fails, failure_message, failures, will_be_recorded

GREEN = {
    Verdict.UNCHANGED, Verdict.SAME, Verdict.NOT_SLOWER, Verdict.FASTER, Verdict.BETTER, Verdict.ENV_SHIFT,
    Verdict.INCONCLUSIVE, Verdict.NEW, Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED,
}  # fmt: skip
ACCEPT = "If this change is intended: pytest --update-baselines, and commit what it writes."
RECORD = "no baseline yet: record one with pytest --update-baselines=new and commit it"
DECIDE = "undecided within the budget: a quieter GPU or a larger --gpuperf-budget decides it"


def red(**options: Any) -> set[Verdict]:
    return {verdict for verdict in Verdict if fails(judgement(verdict), Options(**options))}


def test_a_regression_alone_is_red_unless_more_is_asked_for() -> None:
    assert red() == set(Verdict) - GREEN == {Verdict.SLOWER, Verdict.WORSE}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"missing": "fail"}, {Verdict.NEW}),
        ({"unreached": "fail"}, {Verdict.NOT_MEASURED}),
        ({"inconclusive": "fail"}, {Verdict.INCONCLUSIVE}),
        ({"strict": True}, {Verdict.FASTER, Verdict.BETTER}),
    ],
)
def test_an_option_makes_its_own_verdicts_red(options: dict[str, Any], more: set[Verdict]) -> None:
    assert red(**options) == {Verdict.SLOWER, Verdict.WORSE} | more


def test_counters_that_are_not_there_are_never_red() -> None:
    for kind, outcome in (("counters", False), ("static", True), ("time", True)):
        assert fails(judgement(Verdict.NOT_MEASURED, kind), Options(unreached="fail")) is outcome  # type: ignore[arg-type]


def recorded(**options: Any) -> set[Verdict]:
    return {verdict for verdict in Verdict if will_be_recorded(judgement(verdict), Options(**options))}


def test_an_update_records_what_its_mode_says_and_never_what_was_not_measured() -> None:
    everything = set(Verdict) - {Verdict.NOT_MEASURED}
    assert recorded() == set()
    assert recorded(update="new") == {Verdict.NEW}
    assert recorded(update="changed") == recorded(update="all") == everything


def test_failures_are_what_fails_and_will_not_be_recorded() -> None:
    found = [judgement(Verdict.SLOWER), judgement(Verdict.NEW, workload="other"), judgement(Verdict.SAME)]
    assert failures(found, Options()) == found[:1]
    assert failures(found, Options(missing="fail")) == found[:2]
    assert failures(found, Options(missing="fail", update="new")) == found[:1]
    assert failures(found, Options(missing="fail", update="all")) == []


def test_a_message_has_the_lines_of_each_workload_and_says_once_how_to_accept_it() -> None:
    slower, worse = judgement(Verdict.SLOWER), judgement(Verdict.WORSE, "static")
    other = judgement(Verdict.SLOWER, workload="other")
    assert failure_message([slower, other, worse]).splitlines() == [
        *workload_lines([slower, worse], ()), *workload_lines([other], ()), ACCEPT
    ]  # fmt: skip


def test_causes_stand_with_the_workload_that_they_are_of() -> None:
    cause = Advice(cause="bank conflicts", evidence=(), gain=0.4)
    slower, other = judgement(Verdict.SLOWER), judgement(Verdict.SLOWER, workload="other")
    text = failure_message([slower, other], {key("other"): (cause,)})
    assert text.splitlines() == [*workload_lines([slower], ()), *workload_lines([other], [cause]), ACCEPT]
    assert workload_lines([other], [cause]) != workload_lines([other], ())


def test_an_update_of_counters_is_told_to_take_them() -> None:
    assert failure_message([judgement(Verdict.WORSE, "counters")]).endswith(
        ACCEPT.replace("pytest", "pytest --gpuperf-ncu")
    )
    assert failure_message([judgement(Verdict.NEW, "counters")]).endswith(
        RECORD.replace("pytest", "pytest --gpuperf-ncu")
    )


@pytest.mark.parametrize(
    ("verdict", "reason", "words"),
    [
        (Verdict.NEW, "", [RECORD]),
        (Verdict.INCONCLUSIVE, f"{UNDECIDED}: 40 blocks", [DECIDE]),
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
    assert last.startswith("the baseline is stale: accept the gain with pytest --update-baselines")
