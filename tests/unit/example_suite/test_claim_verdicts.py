"""The rule by which a claim has its verdict: from what the document says and what was measured alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded_scripts import load_script

verdicts = load_script(Path(__file__).parents[3] / "example_suite" / "verdicts.py", "example_suite_verdicts")
Said, Verdict = verdicts.Said, verdicts.Verdict
REPRODUCED, MORE, LESS, CONTRADICTED = Verdict.REPRODUCED, Verdict.MORE, Verdict.LESS, Verdict.CONTRADICTED
AT_LEAST_NO_EFFECT = st.floats(1.0, 1e6)
FIGURES = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("says", "neutral", "measured", "verdict"),
    [
        (2.0, 1, 2.0, REPRODUCED),
        (2.0, 1, 2.3, REPRODUCED),  # 15 % above, and a hair more
        (2.0, 1, 2.3001, MORE),
        (2.0, 1, 1.7, REPRODUCED),  # 15 % below, and a hair less
        (2.0, 1, 1.6999, LESS),
        (2.0, 1, 1.0101, LESS),
        (2.0, 1, 1.0099, CONTRADICTED),  # no effect to speak of
        (2.0, 1, 1.0, CONTRADICTED),
        (2.0, 1, 0.5, CONTRADICTED),  # the opposite one
        (0.5, 1, 0.5, REPRODUCED),
        (0.5, 1, 0.5751, LESS),
        (0.5, 1, 0.4249, MORE),
        (0.5, 1, 0.995, CONTRADICTED),
        (0.5, 1, 2.0, CONTRADICTED),
        ([2, 5], 1, 2, REPRODUCED),  # a range has no margin
        ([2, 5], 1, 5, REPRODUCED),
        ([2, 5], 1, 1.46, LESS),
        ([2, 5], 1, 5.01, MORE),
        ([1, None], 1, 1.0, REPRODUCED),
        ([1, None], 1, 40, REPRODUCED),
        ([1, None], 1, 0.99, CONTRADICTED),
        ([None, 1], 1, 0.2, REPRODUCED),
        ([None, 1], 1, 1.2, CONTRADICTED),
        ([10, None], 0, 5, LESS),
        ([10, None], 0, 0.0, CONTRADICTED),
        (-20, 0, -22, REPRODUCED),
        (-20, 0, -40, MORE),
        (-20, 0, -1, LESS),
        (-20, 0, 1, CONTRADICTED),
        (16.0, None, 17.0, REPRODUCED),
        (16.0, None, 19.0, CONTRADICTED),  # without a direction there is no more and no less
        ([2, 5], None, 1.46, CONTRADICTED),
    ],
)
def test_a_verdict_follows_from_what_is_said(
    says: float | Sequence[float | None], neutral: float | None, measured: float, verdict: object
) -> None:
    assert Said.of(says, neutral).verdict(measured) is verdict


@pytest.mark.parametrize(("measured", "verdict"), [(32, REPRODUCED), (31, CONTRADICTED), (33, CONTRADICTED)])
def test_a_count_has_to_be_equal(measured: float, verdict: object) -> None:
    assert Said.of(32, None, exact=True).verdict(measured) is verdict


def test_what_is_not_a_number_has_no_verdict() -> None:
    with pytest.raises(ValueError, match="NaN is no measurement"):
        Said.of(2.0, 1).verdict(math.nan)


@pytest.mark.parametrize(
    ("says", "neutral", "words"),
    [
        ([5, 2], None, "a range from 5 to 2 is empty"),
        ([1], None, "a range has two ends, not 1"),
        ([1, 2, 3], None, "a range has two ends, not 3"),
        (math.nan, None, "a range from nan to nan is empty"),
        ([0.5, 2], 1, "the neutral figure 1 lies inside what is said, 0.5 to 2"),
        (1.05, 1, "the neutral figure 1 lies inside what is said"),
        ([None, None], 1, "the neutral figure 1 lies inside"),
    ],
)
def test_a_statement_without_sense_is_refused(
    says: float | Sequence[float | None], neutral: float | None, words: str
) -> None:
    with pytest.raises(verdicts.BadClaim, match=words):
        Said.of(says, neutral)


def test_a_page_can_tell_a_figure_from_a_range() -> None:
    assert Said.of(2.0, 1).figure == 2.0
    assert Said.of([1.7, 2.3], 1).figure is None


@given(figure=st.floats(1.2, 1e6), measured=st.floats(1e-3, 1e9))
def test_the_larger_the_measured_ratio_the_further_its_verdict(figure: float, measured: float) -> None:
    order = [CONTRADICTED, LESS, REPRODUCED, MORE]
    said = Said.of(figure, 1)
    assert order.index(said.verdict(measured)) <= order.index(said.verdict(measured * 1.1))


@given(figure=st.floats(1.2, 1e3), gain=st.floats(1e-3, 1e6))
def test_more_in_one_direction_is_less_in_the_other(figure: float, gain: float) -> None:
    """What is said of a difference and of its negative comes to the same verdict."""
    assert Said.of(figure, 0).verdict(gain) is Said.of(-figure, 0).verdict(-gain)


@given(low=FIGURES, width=st.floats(0, 1e6), measured=FIGURES)
def test_inside_of_a_range_and_only_there_a_claim_is_reproduced(low: float, width: float, measured: float) -> None:
    inside = low <= measured <= low + width
    assert (Said.of([low, low + width], None).verdict(measured) is REPRODUCED) == inside
