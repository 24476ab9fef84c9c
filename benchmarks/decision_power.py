"""The decision on time, simulated: false SLOWER of equal work, and power at +1 %.

    python benchmarks/decision_power.py --output docs/results/decision.md

Exit status 1 if equal kernels were slower, or equal callables more often than the error rate allows.  Two minutes,
without a GPU.  Blocks of equal kernels are drawn in pieces of eight, with fresh coins, from ``tests/replays`` or from
the folder of ``paired_campaign.py kernels``.  Other blocks are normal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from pytest_gpuperf.judge import decision as judge
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, MOST_BLOCKS, PASSING, Decision, share
from pytest_gpuperf.model.limits import TIGHT

Values = NDArray[np.float64]
Codes = NDArray[np.int64]
Noise = Callable[[np.random.Generator, int], tuple[Values, Values]]
"""Blocks of equal work, so many rows: log ratios of midmeans and of means."""
EFFECTS = (0.0, TIGHT.tolerance, TIGHT.detect)
TESTS = (1, 20, 500)
"""That a run collects; the workload is the first of one."""
SPREADS = (0.1, 0.3, 0.5, 1.0)
"""Standard deviation of normal blocks, percent."""
PIECE, RELOAD = 4000, 8
SLOWER, FASTER, SAME, UNDECIDED = OUTCOMES = range(4)
WITHIN_PAIRS = 0.002
"""Standard deviation of the blocks of a pair of processes."""
MEASURED = ((0.5, 0.0014), (0.9, 0.0056), (0.99, 0.012))
"""Quantiles of how far a callable's processes are apart, on H100s (``judge.decision.PROCESS_DEVIATION``)."""


def money(bets: Values) -> Values:
    """``judge.log_e`` after each block; a row for each run."""
    with np.errstate(divide="ignore"):
        paths = [np.cumsum(np.log1p(rate * bets), axis=1) for rate in judge.RATES]
    return np.asarray(np.logaddexp.reduce(paths, axis=0) - math.log(len(paths)))


def decided(r: Values, means: Values, alphas: Sequence[float]) -> Iterator[tuple[Codes, Codes]]:
    """``judge.decide`` of each row, block by block, at each error rate: the decision, and blocks until then."""
    tolerance, detect = math.log1p(TIGHT.tolerance), math.log1p(TIGHT.detect)
    by_means = money(np.clip((means - tolerance) / judge.MEANS_SCALE, -1, 1))
    slower = np.logaddexp(
        money(np.sign(r - tolerance)) + math.log(1 - judge.MEANS_SHARE), by_means + math.log(judge.MEANS_SHARE)
    )
    passed = (money(np.sign(detect - r)) >= PASSING) & (slower < PASSING) & (by_means < judge.TRENDING)
    faster = money(np.sign(-tolerance - r)) >= PASSING
    outcomes = np.where(passed, np.where(faster, FASTER, SAME), UNDECIDED)
    for alpha in alphas:
        codes = np.where(slower >= -math.log(alpha), SLOWER, outcomes)
        ends = codes != UNDECIDED
        stops = np.where(ends.any(axis=1), ends.argmax(axis=1), r.shape[1] - 1)
        yield codes[np.arange(len(r)), stops], stops + 1


def normal(percent: float) -> Noise:
    return lambda rng, rows: (rng.normal(0, percent / 100, (rows, MOST_BLOCKS)),) * 2


def recorded(folders: Sequence[Path]) -> dict[str, list[tuple[Values, Values]]]:
    """Blocks of equal kernels, of midmeans and of means, by GPU.  Where means were not kept, they are the midmeans."""
    found: dict[str, list[tuple[Values, Values]]] = defaultdict(list)
    for file in sorted(file for folder in folders for file in folder.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        for one in document.get("sequences", ()):
            if not one["percent"]:
                r, means = (np.asarray(one.get(key, one["r"])) * document["unit"] for key in ("r", "means"))
                found[document["gpu"]].append((r, means))
    return found


def redrawn(kernels: Sequence[tuple[Values, Values]]) -> Noise:
    """Runs of one kernel each, kernel after kernel."""

    def noise(rng: np.random.Generator, rows: int) -> tuple[Values, Values]:
        r, means = np.empty((2, rows, MOST_BLOCKS))
        for number, recordings in enumerate(kernels):
            shape = (len(range(number, rows, len(kernels))), MOST_BLOCKS // RELOAD, 1)
            starts = rng.integers(0, len(recordings[0]) - RELOAD + 1, shape)
            places = (starts + np.arange(RELOAD)).reshape(shape[0], MOST_BLOCKS)
            coins = rng.choice([-1.0, 1.0], places.shape)
            r[number :: len(kernels)], means[number :: len(kernels)] = (coins * one[places] for one in recordings)
        return r, means

    return noise


def blocks_table(noises: dict[str, Noise], runs: int) -> tuple[list[str], bool]:
    """Verdicts by the blocks of one process; and whether a promise is broken."""
    alphas, rows, broken = [share(tests, 1) for tests in TESTS], [], False
    for name, effect in itertools.product(noises, EFFECTS):
        rng, pieces = np.random.default_rng(1), []
        for start in range(0, runs, PIECE):
            r, means = (part + math.log1p(effect) for part in noises[name](rng, min(PIECE, runs - start)))
            pieces.append(np.array(list(decided(r, means, alphas))))
        for tests, alpha, (codes, stops) in zip(TESTS, alphas, np.concatenate(pieces, axis=2), strict=True):
            found, allowed = int((codes == SLOWER).sum()), runs * alpha + 4 * math.sqrt(runs * alpha) if effect else 0.0
            broken |= effect < TIGHT.detect and found > allowed
            rows.append(f"| {name} | +{100 * effect:g} % | {tests} | {found} | {int(np.median(stops))} |")
    return rows, broken


def by_prior(rng: np.random.Generator, rows: int) -> Values:
    """Deviation of each callable's processes, as the prior has it."""
    freedom = judge.PROCESS_FREEDOM
    return np.asarray(judge.PROCESS_DEVIATION * np.sqrt(freedom / rng.chisquare(freedom, rows)))


def as_measured(rng: np.random.Generator, rows: int) -> Values:
    """The same by the quantiles that were measured, and in a straight line beyond them."""
    places, logs = scipy.special.ndtri([one for one, _ in MEASURED]), np.log([one for _, one in MEASURED])
    z, slopes = rng.normal(0, 1, rows), np.diff(logs) / np.diff(places)
    below, above = np.minimum(z - places[0], 0), np.maximum(z - places[-1], 0)
    return np.asarray(np.exp(np.interp(z, places, logs) + below * slopes[0] + above * slopes[-1]))


def pairs_of_processes(rng: np.random.Generator, truths: Values, alpha: float) -> tuple[Codes, Values]:
    """What each pair, so far apart in truth, decides by its blocks, and the ratio that it shows."""
    codes, ratios = [], []
    for part in np.array_split(truths, math.ceil(len(truths) / PIECE)):
        r = rng.normal(0, WITHIN_PAIRS, (len(part), MOST_BLOCKS)) + part[:, np.newaxis]
        ((found, stops),) = decided(r, r, [alpha])
        codes.append(found)
        used = np.where(np.arange(MOST_BLOCKS) < stops[:, np.newaxis], r, np.nan)
        ratios.append(np.exp(np.nanmedian(used, axis=1)))
    return np.concatenate(codes), np.concatenate(ratios)


def callables(apart: Values, effect: float, tests: int) -> Counter[str]:
    """How callables come out whose processes are so far apart, and of how many pairs of processes in all."""
    rng, alpha, fresh = np.random.default_rng(2), share(tests, 1), max(judge.LOOKS) - 1
    truths = math.log1p(effect) + math.sqrt(2) * apart[:, np.newaxis] * rng.normal(0, 1, (len(apart), 1 + fresh))
    codes, firsts = pairs_of_processes(rng, truths[:, 0], alpha)
    slower = codes == SLOWER
    found = Counter(passed=int((codes == SAME).sum() + (codes == FASTER).sum()), pairs=len(apart))
    found["undecided"] = int((codes == UNDECIDED).sum())
    others = pairs_of_processes(rng, truths[slower, 1:].ravel(), CONFIRMING_ALPHA)[1] if slower.any() else np.empty(0)
    for first, more in zip(firsts[slower].tolist(), others.reshape(-1, fresh).tolist(), strict=True):
        ratios = [first, more[0]]
        while (verdict := judge.over_processes(ratios, TIGHT, alpha)) is None and judge.wants_pair(ratios, TIGHT):
            ratios.append(more[len(ratios) - 1])
        found["pairs"] += len(ratios) - 1
        found[{Decision.SLOWER: "SLOWER", Decision.SAME: "passed"}.get(verdict, "undecided")] += 1
    return found


def callables_table(runs: int) -> tuple[list[str], bool]:
    rows, broken = [], False
    for name, spread in (("the prior", by_prior), ("measured on H100s", as_measured)):
        for effect in (*EFFECTS, 0.02):
            count = runs if effect < TIGHT.detect else min(runs, PIECE)
            for tests in TESTS:
                found = callables(spread(np.random.default_rng(1), count), effect, tests)
                broken |= not effect and found["SLOWER"] > math.ceil(count * share(tests, 1))
                counts = " | ".join(str(found[key]) for key in ("SLOWER", "passed", "undecided"))
                pairs = f"{found['pairs'] / count:.2f}"
                rows.append(f"| {name} | +{100 * effect:g} % | {tests} | {count} | {counts} | {pairs} |")
    return rows, broken


PAGE = """\
# The decision on time, simulated

    python benchmarks/decision_power.py --output docs/results/decision.md

made this page, without a GPU. The limits are those of *tight*: 0.5 % (tolerated) and 1 % (must be found). So SLOWER is
false for equal work (+0 %), and also at +0.5 %, where it is likeliest. A run has an error rate of 0.001 and collects so
many *tests*.
The workload is the first of one of them, and has {alphas} of it for {tests} tests.

## Blocks in one process

{runs} verdicts a row. A test fails only if a second process agrees, so the false ones are upper bounds. Normal
blocks have the standard deviation of their name. Recorded blocks are of equal kernels ({recorded}), and each has a
new coin.

| blocks | truth | tests | SLOWER | blocks, median |
|---|---|---|---|---|
{blocks}

## Callables, by pairs of processes

All blocks of a process have what the process has for life. How far processes of a callable are apart is drawn from
the prior of `judge.decision`, or from the quantiles that were measured on H100s. The first pair decides by its blocks.
After a SLOWER, fresh pairs follow until all pairs together decide, or 16 did not. *Pairs* is the mean.

| processes are apart by | truth | tests | verdicts | SLOWER | passed | undecided | pairs |
|---|---|---|---|---|---|---|---|
{callables}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    replays = Path(__file__).resolve().parents[1] / "tests" / "replays"
    made.add_argument("--blocks", type=Path, nargs="+", default=[replays], help="folders of recorded blocks")
    made.add_argument("--runs", type=int, default=20_000, help="verdicts a row (default 20,000)")
    made.add_argument("--output", type=Path, help="write the page to this file")
    chosen = made.parse_args(arguments)
    gpus = recorded(chosen.blocks)
    noises = {f"normal, {percent:g} %": normal(percent) for percent in SPREADS}
    noises |= {f"recorded, {gpu}": redrawn(kernels) for gpu, kernels in gpus.items()}
    (blocks, broken), (others, also) = blocks_table(noises, chosen.runs), callables_table(chosen.runs)
    page = PAGE.format(
        alphas=", ".join(f"{share(tests, 1):.2g}" for tests in TESTS), tests=", ".join(map(str, TESTS)),
        recorded=", ".join(f"{sum(len(r) for r, _ in kernels):,} of {gpu}s" for gpu, kernels in gpus.items()),
        runs=f"{chosen.runs:,}", blocks="\n".join(blocks), callables="\n".join(others),
    )  # fmt: skip
    print(page)
    if chosen.output:
        chosen.output.write_text(page, encoding="utf-8")
    return int(broken or also)


if __name__ == "__main__":
    sys.exit(main())
