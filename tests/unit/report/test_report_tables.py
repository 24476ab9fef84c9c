"""The cell of a verdict, where architectures differ."""

from __future__ import annotations

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.tables import MARKUP, PASSING, verdict_cell


def cell(*verdicts: Verdict) -> str:
    key = Key(module="a", test="b", workload="c")
    return verdict_cell([Judgement(key=key, target="sm_90", kind="static", verdict=one) for one in verdicts], "static")[
        0
    ]


@pytest.mark.parametrize("other", [one for one in Verdict if one is not Verdict.UNCHANGED])
def test_what_changed_on_one_architecture_is_not_shown_as_unchanged(other: Verdict) -> None:
    assert cell(Verdict.UNCHANGED, other, Verdict.UNCHANGED) == other.value


def test_what_is_unchanged_everywhere_is_shown_as_such() -> None:
    assert cell(Verdict.UNCHANGED, Verdict.UNCHANGED) == "UNCHANGED"


def test_every_verdict_has_its_place() -> None:
    assert {*MARKUP, *PASSING} == set(Verdict)
