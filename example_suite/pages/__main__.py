"""Writes the pages of the suite: docs/textbook, and the gains in the suite's README.

    python example_suite/pages            # all that has changed
    python example_suite/pages --check    # write nothing; status 1 if anything is out of date

Run it after baselines, counters, claims, kernels or lessons have changed.  Needs no GPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "claims"))
from pages import textbook
from pages.facts import README, SUITE, Recorded

PAGES = SUITE.parent / "docs" / "textbook"
MOST = 5
"""Pairs of a family that the tour shows; the family's page has all."""
_MARKED = re.compile(r"(<!-- gain (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def gains(family: str, recorded: Recorded) -> str:
    """A list of the family's pairs."""
    known = [(pair, gain) for pair in textbook.pairs_of(family) if (gain := recorded.gain(pair)) is not None]
    lines = []
    for pair, gain in known[:MOST]:
        figure = f"{gain:.2f}" if gain < 2 else f"{gain:.1f}" if gain < 10 else f"{gain:.0f}"
        lines.append(f"* {figure}{pair.gain_of}: `{pair.optimised}` over `{pair.naive}`")
    return "\n".join([*lines, *([f"* and {len(known) - MOST} more"] if len(known) > MOST else [])])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the pages of the suite from kernels, lessons and baselines.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if anything is out of date")
    check, recorded = parser.parse_args(arguments).check, Recorded()
    there = {file: file.read_text(encoding="utf-8") for file in (*PAGES.glob("*.md"), README)}
    made = {PAGES / name: text for name, text in textbook.pages(recorded).items()}
    made[PAGES / "README.md"] = textbook.index()
    made[README] = _MARKED.sub(lambda marked: f"{marked[1]}{gains(marked[2], recorded)}\n{marked[3]}", there[README])
    stale = [file for file in sorted(made.keys() | there.keys()) if made.get(file) != there.get(file)]
    for file in stale:
        print(f"{'out of date: ' if check else ''}{file}")
        if not check:
            file.write_text(made[file], encoding="utf-8") if file in made else file.unlink()
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
