"""Bisect synthetic histories with the procedure as coded, on blocks recorded on an H200: who is named, at what price.

    python benchmarks/bisect_histories.py --output docs/results/bisect.md

A history has 64 commits after the good end and one step of +2 %.  In some of them four commits do not build, in others
one commit in eight moves the time to another place within 0.3 % of what it is; in a third of the commits the machine
code is that of the one before.  A verdict is that of the gate: paired blocks drawn from recorded ones, and a second
process for what is slower.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.judge.bisection import Answer, Found, search
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, MOST_BLOCKS, Decision, decide, share
from pytest_gpuperf.model.limits import LIMITS

ROOT = Path(__file__).resolve().parents[1]
REPLAYS = ROOT / "tests" / "replays"
COMMITS, STEP, NOISE = 64, 0.02, 0.003
LEAST_NS = 9000.0
"""Kernels from this length on are promised to be told apart at the default tolerance."""
PLACEMENT_SD = 0.0005
"""Of a process: where a cubin lies in it cannot be randomised away."""
KINDS = {"plain": 60, "four do not build": 20, "noise of 0.3 %": 20}


class History(NamedTuple):
    """What each commit is, the good end first."""

    culprit: int
    ratios: list[float]
    """Of the time, to the good end's."""
    codes: list[int | None]
    """Equal for equal machine code; None where it does not build."""


def recorded(folder: Path = REPLAYS) -> list[list[float]]:
    """Log ratios of blocks of equal kernels, by kernel."""
    found = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["duration_ns"] >= LEAST_NS:
            found += [
                [value * document["unit"] for value in one["r"]]
                for one in document["sequences"]
                if one["percent"] == 0.0
            ]
    return found


def history(kind: str, chance: random.Random) -> History:
    culprit = chance.randrange(1, COMMITS + 1)
    base, noise, code = 1.0, 0.0, 0
    broken = set(chance.sample(range(1, COMMITS), 4)) - {culprit} if kind == "four do not build" else set()
    ratios, codes = [1.0], list[int | None]([0])
    for commit in range(1, COMMITS + 1):
        changes = commit == culprit or chance.random() > 1 / 3
        if commit == culprit:
            base += STEP
        elif changes and kind == "noise of 0.3 %" and chance.random() < 1 / 8:
            noise = chance.choice((-NOISE, 0.0, NOISE))
        code += changes
        ratios.append(base + noise)
        codes.append(None if commit in broken else code)
    return History(culprit, ratios, codes)


def verdict(ratio: float, blocks: Sequence[float], chance: random.Random) -> Answer:
    """What the gate says of a workload that takes ``ratio`` times as long."""
    first = _process(ratio, blocks, share(1, 1), chance)
    if first is not Decision.SLOWER:
        return "undecided" if first is None else "good"
    second = _process(ratio, blocks, CONFIRMING_ALPHA, chance)
    return "bad" if second is Decision.SLOWER else "undecided"


def _process(ratio: float, blocks: Sequence[float], alpha: float, chance: random.Random) -> Decision | None:
    shift = math.log(ratio) + chance.gauss(0.0, PLACEMENT_SD)
    r: list[float] = []
    while len(r) < MOST_BLOCKS:
        r.append(shift + chance.choice(blocks) * chance.choice((-1, 1)))
        if decision := decide(r, LIMITS, alpha):
            return decision
    return None


class Tried(NamedTuple):
    """One history that was searched."""

    kind: str
    outcome: str
    """``right``, ``wrong``, ``not told apart``, or that the bad end was not found to be bad."""
    verdicts: int
    among: int
    """Commits that were named or not told apart."""


def try_one(kind: str, seed: int, kernels: Sequence[Sequence[float]]) -> Tried:
    chance = random.Random(f"{kind} {seed}")
    past, blocks = history(kind, chance), chance.choice(kernels)
    asked: list[str] = []

    def ask(name: str) -> Answer:
        """Equal code needs no time, as its verdict is UNCHANGED; and where nothing builds there is no verdict."""
        code = past.codes[int(name)]
        if code is None:
            return "undecided"
        asked.append(name)
        return "good" if code == 0 else verdict(past.ratios[int(name)], blocks, chance)

    names = [str(number) for number in range(COMMITS + 1)]
    if (end := ask(names[-1])) != "bad":
        return Tried(kind, f"not begun: the bad end is {end}", 0, 0)
    found = search(names, ask)
    return Tried(kind, _outcome(found, past), len(asked), 1 + len(found.between))


def _outcome(found: Found, past: History) -> str:
    suspects = {int(one) for one in (*found.between, found.bad)}
    if past.culprit not in suspects:
        return "wrong"
    return "not told apart" if found.between else "right"


PAGE = """\
# Bisecting synthetic histories

{commits} commits after the good end, one step of +{step:.0%} in each history, at a tolerance of 0.5 %.
Verdicts are those of the gate on blocks that were recorded on an H200 (kernels from 10 us on). *Not told apart* names
several commits, the guilty one among them: those beside it do not build, or could not be judged. Made without a GPU by

    python benchmarks/bisect_histories.py --output docs/results/bisect.md

| histories | number | right | not told apart, most commits | an innocent one named | verdicts, median and most |
|---|---|---|---|---|---|
{rows}
"""


def row(name: str, tried: Sequence[Tried]) -> str:
    counts = {outcome: sum(one.outcome == outcome for one in tried) for outcome in ("right", "not told apart", "wrong")}
    most = max((one.among for one in tried if one.outcome == "not told apart"), default=0)
    verdicts = [one.verdicts for one in tried]
    apart = f"{counts['not told apart']}, {most}" if most else "0"
    return (
        f"| {name} | {len(tried)} | {counts['right']} | {apart} | {counts['wrong']} | "
        f"{statistics.median(verdicts):g}, {max(verdicts)} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if an innocent commit was named, or a verdict more was needed than promised."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="MD", help="the page to write")
    parser.add_argument("--times", type=int, default=1, help="so many times as many histories")
    chosen = parser.parse_args(arguments)
    kernels = recorded()
    tried = [try_one(kind, seed, kernels) for kind, number in KINDS.items() for seed in range(number * chosen.times)]
    rows = [row(kind, [one for one in tried if one.kind == kind]) for kind in KINDS]
    page = PAGE.format(commits=COMMITS, step=STEP, rows="\n".join([*rows, row("all", tried)]))
    print(page)
    for one in tried:
        if one.outcome.startswith("not begun"):
            print(one.kind, one.outcome)
    if chosen.output is not None:
        chosen.output.write_text(page, encoding="utf-8")
    named = sum(one.outcome == "wrong" for one in tried)
    return int(bool(named) or max(one.verdicts for one in tried) > 7)


if __name__ == "__main__":
    sys.exit(main())
