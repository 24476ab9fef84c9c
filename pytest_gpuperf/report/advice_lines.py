"""Causes and states as text, in lines that fit a terminal of 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.model.advice import Advice, State

WIDTH = 100
INDENT = 4
NO_BREAK = "\N{NO-BREAK SPACE}"
SHOWN = 2
"""Causes under a red verdict."""
FIGURES = 3
"""Figures of evidence per cause."""
WORTH_A_SECOND = 0.25
"""A cause of nothing that gates is shown if its gain is this part of the largest one's."""


def advice_lines(advice: Sequence[Advice], most: int = SHOWN) -> list[str]:
    """The likeliest causes, each with its evidence, gain, remedy and example."""
    lines: list[str] = []
    for one in worth_naming(advice)[:most]:
        lines += _cause(one)
    return lines


def worth_naming(advice: Sequence[Advice]) -> list[Advice]:
    """Causes of figures that gate, whatever they cost, and of the others those that are not far behind the largest.

    A report of another version may have causes that this one does not know; they are left out.
    """
    advice = [one for one in advice if one.cause in BY_KEY]
    least = WORTH_A_SECOND * max((one.gain for one in advice), default=0.0)
    return [one for one in advice if one.gates or one.gain >= least]


def _cause(one: Advice) -> list[str]:
    cause = BY_KEY[one.cause]
    evidence = ", ".join(map(str, one.evidence[:FIGURES]))
    where = f" ({one.arch})" if one.arch and not one.counted else ""
    return [
        *wrapped(f"cause: {cause.key}{where}: {cause.says}", INDENT),
        *wrapped(f"{evidence}; {gain_words(one)}", INDENT + 4),
        *wrapped(f"-> {cause.remedy}", INDENT + 4),
        *wrapped(f"example: {cause.family} (gpuperf examples)", INDENT + 4),
    ]


def gain_words(one: Advice) -> str:
    """``gain about 40 %, by the counters``."""
    source = "by the counters" if one.counted else "by the machine code"
    percent = round(one.gain * 100)
    return f"gain about {percent} %, {source}" if percent else f"gain small, {source}"


def state_line(state: State) -> str:
    """``memory bound: 87 % of the measured copy bandwidth``."""
    missing = f" ({state.missing})" if state.missing else ""
    return f"{state.bound} bound: {state.why}{missing}"


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of at most ``WIDTH`` columns, the second and later ones a little further in; ``62 %`` stays together."""
    lines = textwrap.wrap(
        text.replace(" %", f"{NO_BREAK}%"), WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(NO_BREAK, " ") for line in lines]
