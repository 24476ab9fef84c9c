"""Puts the gains on record into the tour of the README, between its markers.

    python example_suite/tour.py

Run it after times were recorded; the README says nothing of them by itself.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pairs import PAIRS, Pair
from recorded import Recorded

README = Path(__file__).with_name("README.md")
MOST = 5
"""Pairs of a family that are shown; ``docs/results/siblings.md`` has all."""
_MARKED = re.compile(r"(<!-- gain (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class BadTour(ValueError):
    """The README has a marker of a family without pairs, or lacks one of a family that has some."""


def with_gains(text: str, recorded: Recorded) -> str:
    """The README with the gains of today's baselines.  Raises ``BadTour``."""
    families = {pair.family for pair in PAIRS}
    marked = [family for _, family, _ in _MARKED.findall(text)]
    if sorted(marked) != sorted(families):
        odd = ", ".join(sorted(families.symmetric_difference(marked))) or "a family twice"
        raise BadTour(f"{README.name} and pairs.py do not have the same families: {odd}")
    return _MARKED.sub(lambda found: f"{found[1]}{gains(found[2], recorded)}\n{found[3]}", text)


def gains(family: str, recorded: Recorded) -> str:
    """A list of the family's pairs."""
    pairs = [pair for pair in PAIRS if pair.family == family]
    known = [(pair, gain) for pair in pairs if (gain := recorded.gain(pair)) is not None]
    if not known:
        return "* not on record yet"
    lines = [f"* {_figure(gain)}: `{pair.optimised}` over `{pair.naive}`{_how(pair)}" for pair, gain in known[:MOST]]
    return "\n".join([*lines, *([f"* and {len(known) - MOST} more"] if len(known) > MOST else [])])


def _how(pair: Pair) -> str:
    """What a gain is of, where it is not simply that of two times for the same work."""
    if pair.wall:
        return f", by the clock on the wall ({pair.wall})"
    return "" if pair.work == 1 else f", for {pair.work:g} times its work"


def _figure(gain: float) -> str:
    """To about two digits, so that another recording says the same."""
    return f"{gain:.2f}" if gain < 2 else f"{gain:.1f}" if gain < 10 else f"{gain:.0f}"


def main() -> int:
    try:
        text = with_gains(README.read_text(encoding="utf-8"), Recorded())
    except BadTour as problem:
        print(f"tour: {problem}", file=sys.stderr)
        return 1
    README.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
