"""Whether the assertions of claims notice another figure, and another kernel.

    python benchmarks/claim_mutations.py --output docs/results/claim_mutations.md

Of 60 claims, drawn by a seed from those with a figure in the committed outcomes, the figure is moved: 30 % up and down,
by one where it is zero or an exact count.  Besides, the suite is replayed (``replay_claims.py``) with the naive sibling
in the place of the optimised workload, pair by pair, for every claim of those tests.  No GPU is needed.
Exits with 1 if a moved figure passes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUITE = HERE.parent / "example_suite"
sys.path[:0] = [str(HERE), str(SUITE)]

import outcomes  # noqa: E402
import recorded_run  # noqa: E402
import replay_claims  # noqa: E402
from claims import EXPECTED_OF, Claim, ClaimChecker, load_claims  # noqa: E402

DRAWN = 60
SEED = 2026
SHIFT = 0.3
CHANGED = 0.01
"""A figure that moves by less, as a share of it, is not about the sibling."""

PAGE = """\
# Whether claims notice another figure, and another kernel

Made without a GPU, from the figures of `example_suite/outcomes/nvidia-h200.json` and from times and counters that an
H200 recorded:

    python benchmarks/claim_mutations.py --output docs/results/claim_mutations.md

{summary}

## Another figure

{drawn} of the {measured} claims with a figure, drawn with seed {seed}. The figure is moved by 30 % up and down; by one
where it is zero or an exact count. The last column has the kernel's naive sibling in the place of the optimised one:
the figure then, and what the assertion said of it. It is empty where no sibling gives another figure: the claim is
about one kernel alone, or is read from the machine code as it is compiled, which a sibling's place does not change.

{figures}
## Another kernel

Claims whose figure moves by more than {changed:.0%} with a naive sibling in place, and which no sibling turns red. What
they say is true of the sibling too, or the two sides differ by less than figures vary from GPU to GPU:

{survivors}

## What cannot be moved

Claims without a figure in these outcomes:

{without}
"""


@dataclasses.dataclass(frozen=True)
class Said:
    """What the assertion of a claim said of a figure."""

    figure: float
    words: str
    """Empty if it passed."""

    def __str__(self) -> str:
        return f"{outcomes.number(self.figure)}: {'fails' if self.words else 'PASSES'}"


@dataclasses.dataclass(frozen=True)
class Sibling:
    """A claim with a naive sibling in the place of an optimised workload."""

    claim: str
    optimised: str
    naive: str
    before: float
    said: Said | None
    """None where the test failed on something else before it came to the claim."""

    @property
    def is_another_figure(self) -> bool:
        return self.said is None or abs(self.said.figure - self.before) > CHANGED * abs(self.before)

    def __str__(self) -> str:
        place = f"{self.naive} for {self.optimised}"
        return f"{place}: {'the test fails before' if self.said is None else self.said}"


def draw(found: outcomes.Outcomes) -> list[Claim]:
    """Claims with a figure, always the same ones of the same claims."""
    names = [claim.id for claim in load_claims().values() if figure_of(found, claim) is not None]
    chosen = set(random.Random(SEED).sample(sorted(names), min(DRAWN, len(names))))
    return [claim for claim in load_claims().values() if claim.id in chosen]


def figure_of(found: outcomes.Outcomes, claim: Claim) -> float | None:
    measured: float | None = found.claims[claim.id]["measured"] if claim.here is not None else None
    return measured


def shifted(claim: Claim, figure: float) -> tuple[float, float]:
    """Up and down."""
    exact = claim.here is not None and claim.here.low == claim.here.high
    by = 1.0 if exact or figure == 0 else SHIFT * abs(figure)
    return figure + by, figure - by


def asserted(claim: Claim, figure: float, because: Sequence[float]) -> Said:
    """What the fixture says of a figure, with reasons that are as they were."""
    checker = ClaimChecker(lambda _, __: None, measured_on=lambda: EXPECTED_OF)
    try:
        checker(claim.id, figure, because=because)
    except AssertionError as problem:
        return Said(figure, str(problem))
    return Said(figure, "")


def with_siblings(*tests: str) -> list[dict[str, Any]]:
    """What ``recorded_run.SiblingsInPlace`` wrote.  Raises ``RuntimeError`` where the replay broke off."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "siblings.json"
        done = replay_claims.replay(Path(folder), *tests, options=[f"{recorded_run.IN_PLACE}={file}"])
        if not file.exists():
            raise RuntimeError(f"the replay wrote nothing:\n{done.printed}")
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return found


def siblings(found: outcomes.Outcomes, runs: Iterable[Mapping[str, Any]]) -> list[Sibling]:
    """Of every claim that has a figure both ways, or whose test came to an end before it."""
    named = replay_claims.tests_of_claims()
    made = []
    for run in runs:
        for claim in load_claims().values():
            before = figure_of(found, claim)
            if before is None or named.get(claim.id) != run["test"].rpartition("/")[2]:
                continue
            figure = run["claims"].get(claim.id)
            if figure is None and (claim.id in run["claims"] or not run["ended"]):
                continue
            said = None if figure is None else Said(figure, run["said"].get(claim.id, ""))
            made.append(Sibling(claim.id, run["optimised"], run["naive"], before, said))
    return made


def page(found: outcomes.Outcomes, turned: Sequence[Sibling]) -> tuple[str, bool]:
    """The page, and whether every moved figure failed."""
    chosen = draw(found)
    moved = {claim.id: _moved(found, claim) for claim in chosen}
    passed = [claim_id for claim_id, both in moved.items() if not all(said.words for said in both)]
    others = [one for one in turned if one.is_another_figure]
    noticed = [one for one in others if one.said is None or one.said.words]
    by_claim: dict[str, list[Sibling]] = {}
    for one in others:
        by_claim.setdefault(one.claim, []).append(one)
    blind = {
        claim_id: of for claim_id, of in by_claim.items() if not any(one.said is None or one.said.words for one in of)
    }
    before = sum(one.said is None for one in others)
    summary = (
        f"* Of {len(chosen)} claims whose figure was moved, {len(chosen) - len(passed)} fail both ways.\n"
        f"* Siblings in place concern {len(by_claim)} claims, {len(others)} times. The claim's own assertion fails "
        f"{len(noticed) - before} times,\n  another one of its test before it {before} times.\n"
        f"* {len(by_claim) - len(blind)} of the {len(by_claim)} claims are red for a sibling at least."
    )
    names = [claim for claim in load_claims().values() if figure_of(found, claim) is not None]
    text = PAGE.format(
        summary=summary, drawn=len(chosen), measured=len(names), seed=SEED, changed=CHANGED,
        figures=_figures(found, chosen, moved, by_claim), survivors=_survivors(blind), without=_without(found),
    )  # fmt: skip
    return text, not passed


def _moved(found: outcomes.Outcomes, claim: Claim) -> tuple[Said, Said]:
    figure = figure_of(found, claim)
    assert figure is not None
    middle = [(one.here.low + one.here.high) / 2 for one in claim.because]
    up, down = (asserted(claim, moved, middle) for moved in shifted(claim, figure))
    return up, down


def _figures(
    found: outcomes.Outcomes,
    chosen: Sequence[Claim],
    moved: Mapping[str, tuple[Said, Said]],
    by_claim: Mapping[str, Sequence[Sibling]],
) -> str:
    lines = ["| claim | figure | found on an H200 | up | down | sibling in place |", "|---|---|---|---|---|---|"]
    for claim in chosen:
        figure, (up, down) = figure_of(found, claim), moved[claim.id]
        cells = [
            claim.id, f"{outcomes.number(figure or 0)} {claim.unit}".rstrip(), str(claim.here), str(up), str(down),
            "; ".join(map(str, by_claim.get(claim.id, []))),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _survivors(blind: Mapping[str, Sequence[Sibling]]) -> str:
    lines = [
        f"* {claim_id} ({load_claims()[claim_id].here}): {outcomes.number(of[0].before)}; {'; '.join(map(str, of))}"
        for claim_id, of in blind.items()
    ]
    return "\n".join(lines) or "None."


def _without(found: outcomes.Outcomes) -> str:
    reasons: dict[str, list[str]] = {}
    for claim in load_claims().values():
        if figure_of(found, claim) is None:
            why = found.claims[claim.id].get("missing") or f"not comparable here: {claim.why}"
            reasons.setdefault(str(why), []).append(claim.id)
    return "\n".join(f"* {', '.join(names)}: {why}" for why, names in reasons.items()) or "None."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="See whether the assertions of claims notice another figure or kernel."
    )
    parser.add_argument("--output", type=Path, required=True, metavar="MD", help="the page to write")
    chosen = parser.parse_args(arguments)
    found = outcomes.read(outcomes.COMMITTED)
    text, all_failed = page(found, siblings(found, with_siblings()))
    chosen.output.write_text(text, encoding="utf-8")
    return 0 if all_failed else 1


if __name__ == "__main__":
    sys.exit(main())
