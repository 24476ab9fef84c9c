"""Simulate a ledger with blocks recorded on an H200: re-runs, small losses, drift, quiet commits.

    python benchmarks/ledger_runs.py --output docs/results/ledger.md

A run is seven blocks of a recorded kernel with a coin of their own, and a shift of the process that holds them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_gpuperf.judge.ledger_evidence import TOLERANCE, Vote, drift, slower_by_runs
from pytest_gpuperf.model.ledger import FIRST_BLOCKS, note_of

ROOT = Path(__file__).resolve().parents[1]
REPLAYS = ROOT / "tests" / "replays"
LEAST_NS = 9000.0
SHIFTS = (0.0, 0.0005, 0.001)
"""Standard deviations of what a process does to the time, as logs."""
RERUNS, PATIENCE, QUIET, DRIFTING = 200, 30, 60, 40


def recorded(folder: Path = REPLAYS) -> list[list[float]]:
    """Log ratios of blocks of equal kernels, by kernel."""
    found = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["duration_ns"] >= LEAST_NS:
            found += [[value * document["unit"] for value in one["r"]]
                      for one in document["sequences"] if one["percent"] == 0.0]  # fmt: skip
    return found


def run(log_ratio: float, blocks: Sequence[float], shift_sd: float, chance: random.Random) -> float:
    """What the ledger keeps of a run of a candidate whose time is the opponent's times exp(``log_ratio``)."""
    shift = chance.gauss(0.0, shift_sd) + log_ratio
    ratios = [(shift + chance.choice((-1, 1)) * chance.choice(blocks),) for _ in range(FIRST_BLOCKS)]
    note = note_of("opponent", ratios, chance.getrandbits(32))
    assert note is not None
    return note.log_ratio


def until_slower(loss: float, runs: int, blocks: Sequence[float], shift_sd: float, seed: int) -> int | None:
    """Number of re-runs of one candidate after which it is proven slower; None if it is not."""
    chance, votes = random.Random(f"slower {loss} {shift_sd} {seed}"), list[Vote]()
    for number in range(1, runs + 1):
        votes.append(Vote("code", "commit", run(math.log1p(loss), blocks, shift_sd, chance)))
        if slower_by_runs(votes) is not None:
            return number
    return None


def until_drift(
    of_commit: Callable[[int], float], commits: int, blocks: Sequence[float], shift_sd: float, seed: int
) -> tuple[int, bool] | None:
    """Commit at which drift is reported, and whether the range holds its beginning, the first commit; None: never."""
    chance, votes = random.Random(f"drift {of_commit(1)} {shift_sd} {seed}"), list[Vote]()
    for commit in range(1, commits + 1):
        value = run(math.log1p(of_commit(commit)), blocks, shift_sd, chance)
        votes.append(Vote(f"code {commit}", str(commit), value))
        if (found := drift(votes)) is not None:
            return commit, int(found.since) <= 3
    return None


COLUMNS = (
    "a process shifts", f"{RERUNS} re-runs of equal code: called slower", f"+0.2 %: proven within {PATIENCE} runs",
    "runs it took, median and 95 %", f"{QUIET} quiet commits: drift reported",
    "+0.1 % a commit: reported within 20", "at commit, median and 95 %", "range holds the beginning",
    "+0.05 % a commit: at commit, median and 95 %",
)  # fmt: skip
PAGE = """\
# A ledger of runs, simulated

Blocks are those recorded on an H200 of equal kernels from 10 us on, with fresh coins; a process shifts all of its
blocks by a normal value of the standard deviation in the first column. The tolerance is {tolerance:.2%}; {series}
series per cell. Made without a GPU by

    python benchmarks/ledger_runs.py --output docs/results/ledger.md

{table}
"""


def row(shift_sd: float, series: int, kernels: Sequence[Sequence[float]]) -> tuple[str, bool]:
    """A line of the table, and whether it keeps what is promised."""
    seeds = [(seed, kernels[seed % len(kernels)]) for seed in range(series)]
    false = sum(until_slower(0.0, RERUNS, blocks, shift_sd, seed) is not None for seed, blocks in seeds)
    slower = [until_slower(0.002, 60, blocks, shift_sd, seed) or 61 for seed, blocks in seeds]
    quiet = sum(until_drift(lambda _: 0.0, QUIET, blocks, shift_sd, seed) is not None for seed, blocks in seeds)
    fast, slow = (
        [until_drift(lambda n, step=step: step * n, DRIFTING, blocks, shift_sd, seed) for seed, blocks in seeds]
        for step in (0.001, 0.0005)
    )
    at = [one[0] if one is not None else DRIFTING + 1 for one in fast]
    holds = sum(one is not None and one[1] for one in fast)
    at_slow = [one[0] if one is not None else DRIFTING + 1 for one in slow]
    in_time, soon = sum(one <= PATIENCE for one in slower), sum(one <= 20 for one in at)
    text = (
        f"| {shift_sd:.2%} | {false} of {series} | {in_time} of {series} | {_spread(slower)} | {quiet} of {series} | "
        f"{soon} of {series} | {_spread(at)} | {holds} of {series} | {_spread(at_slow)} |"
    )
    return text, not false and not quiet and in_time >= 0.95 * series and soon >= 0.95 * series


def _spread(values: Sequence[int]) -> str:
    return f"{statistics.median(values):g}, {sorted(values)[math.ceil(0.95 * len(values)) - 1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a promise is not kept where a process shifts by up to 0.05 %."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="MD", help="the page to write")
    parser.add_argument("--series", type=int, default=200, help="of each cell (default 200)")
    chosen = parser.parse_args(arguments)
    kernels = recorded()
    rows = [row(shift_sd, chosen.series, kernels) for shift_sd in SHIFTS]
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    table = "\n".join([*head, *(text for text, _ in rows)])
    page = PAGE.format(tolerance=TOLERANCE, series=chosen.series, table=table)
    print(page)
    if chosen.output is not None:
        chosen.output.write_text(page, encoding="utf-8")
    return 0 if all(kept for _, kept in rows[:2]) else 1


if __name__ == "__main__":
    sys.exit(main())
