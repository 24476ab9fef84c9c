"""The rule by which a claim has its verdict: from what the document says and what was measured alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from loaded_scripts import load_script

verdicts = load_script(Path(__file__).parents[3] / "example_suite" / "verdicts.py", "example_suite_verdicts")
Said, Verdict = verdicts.Said, verdicts.Verdict
REPRODUCED, MORE, LESS, CONTRADICTED = Verdict.REPRODUCED, Verdict.MORE, Verdict.LESS, Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("says", "neutral", "rows"),
    [
        (2.0, 1, [(2.3, REPRODUCED), (2.3001, MORE), (1.7, REPRODUCED), (1.6999, LESS), (1.0101, LESS),
                  (1.0099, CONTRADICTED), (0.5, CONTRADICTED)]),  # 15 % are as good; 1 % is no effect
        (0.5, 1, [(0.5, REPRODUCED), (0.5751, LESS), (0.4249, MORE), (0.995, CONTRADICTED), (2.0, CONTRADICTED)]),
        ([2, 5], 1, [(2, REPRODUCED), (5, REPRODUCED), (1.46, LESS), (5.01, MORE)]),  # a range has no margin
        ([1, None], 1, [(1.0, REPRODUCED), (40, REPRODUCED), (0.99, CONTRADICTED)]),
        ([None, 1], 1, [(0.2, REPRODUCED), (1.2, CONTRADICTED)]),
        ([10, None], 0, [(5, LESS), (0.0, CONTRADICTED)]),
        (-20, 0, [(-22, REPRODUCED), (-40, MORE), (-1, LESS), (1, CONTRADICTED)]),
        (16.0, None, [(17.0, REPRODUCED), (19.0, CONTRADICTED)]),  # without a direction
        ([2, 5], None, [(1.46, CONTRADICTED)]),
    ],
)  # fmt: skip
def test_verdict_follows_from_the_claim(
    says: float | Sequence[float | None], neutral: float | None, rows: list[tuple[float, object]]
) -> None:
    assert [Said.of(says, neutral).verdict(measured) for measured, _ in rows] == [verdict for _, verdict in rows]


def test_a_count_has_to_be_equal_and_a_figure_a_number() -> None:
    exact = [Said.of(32, None, exact=True).verdict(measured) for measured in (32, 31, 33)]
    assert exact == [REPRODUCED, CONTRADICTED, CONTRADICTED]
    assert (Said.of(2.0, 1).figure, Said.of([1.7, 2.3], 1).figure) == (2.0, None)
    with pytest.raises(ValueError, match="NaN is no measurement"):
        Said.of(2.0, 1).verdict(math.nan)


@pytest.mark.parametrize(
    ("says", "neutral", "words"),
    [
        ([5, 2], None, "a range from 5 to 2 is empty"),
        ([1], None, "a range has two ends, not 1"),
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
