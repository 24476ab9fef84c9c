"""The pictures of ``docs/explanation/statistics.md``, drawn from recorded blocks.

    python benchmarks/pictures.py [--replays tests/replays] [--output docs/pictures]

Needs matplotlib: ``pip install --group docs``.  The same recordings make the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from pytest_gpuperf.judge.block_decision import judge_many
from pytest_gpuperf.judge.eprocess import log_e_many
from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.policy import Policy

matplotlib.use("svg")
from matplotlib import pyplot

POLICY = Policy(alpha=Spending().share(20))
SHOWN_BLOCKS = 60
EFFECTS = np.linspace(0.0, 0.016, 33)
RUNS = 2000
COLOURS = {0.0: "#4c72b0", 1.0: "#dd8452", 2.0: "#c44e52"}
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "gpuperf", "font.size": 10, "font.family": "sans-serif",
    "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True,
}  # fmt: skip


class Recording(NamedTuple):
    """Blocks of one kernel at one slowdown."""

    kernel: str
    duration_ns: float
    percent: float
    r: Any
    gpu: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all pictures; 1 if there is nothing to draw from."""
    root = Path(__file__).parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=Path, default=root / "tests" / "replays")
    parser.add_argument("--output", type=Path, default=root / "docs" / "pictures")
    options = parser.parse_args(arguments)
    recordings = [one for path in sorted(options.replays.glob("*.json")) for one in read(path)]
    if not recordings:
        print(f"no recordings in {options.replays}: make them with benchmarks/paired_campaign.py", file=sys.stderr)
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name, figure in (
            ("blocks", draw_blocks(recordings)),
            ("evidence", draw_evidence(recordings)),
            ("detection", draw_detection(recordings)),
        ):
            file = options.output / f"{name}.svg"
            figure.savefig(file, metadata={"Date": None})
            pyplot.close(figure)
            text = "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").splitlines())
            file.write_text(text + "\n", encoding="utf-8")
    return 0


def read(path: Path) -> list[Recording]:
    document = json.loads(path.read_text(encoding="utf-8"))
    return [
        Recording(document["kernel"], document["duration_ns"], one["percent"],
                  np.array(one["r"]) * document["unit"], document["gpu"])
        for one in document["sequences"]
    ]  # fmt: skip


def _kernel_shown(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings of the kernel that is nearest to 10 us, by slowdown."""
    name = min(recordings, key=lambda one: abs(math.log(one.duration_ns / 1e4))).kernel
    return sorted((one for one in recordings if one.kernel == name), key=lambda one: one.percent)


def draw_blocks(recordings: Sequence[Recording]) -> Any:
    """Block values of one kernel as they came, at three slowdowns."""
    figure, axes = pyplot.subplots(figsize=(7.2, 3.2))
    shown = _kernel_shown(recordings)
    for one in shown:
        label = f"+{one.percent:g} %" if one.percent else "against itself"
        axes.plot(100 * np.expm1(one.r[:SHOWN_BLOCKS]), ".", color=COLOURS[one.percent], label=label)
    axes.axhline(100 * POLICY.delta, color="black", linewidth=0.8)
    axes.axhline(-100 * POLICY.delta, color="black", linewidth=0.8)
    axes.axhline(100 * POLICY.epsilon, color="black", linewidth=0.8, linestyle="--")
    _label(axes, 100 * POLICY.delta, "delta: above it,\na vote for SLOWER")
    _label(axes, 100 * POLICY.epsilon, "epsilon: below it,\na vote for NOT-SLOWER")
    axes.set(xlabel=f"block ({shown[0].kernel} on {shown[0].gpu})", ylabel="candidate over baseline, %")
    _legend(axes, columns=3)
    return figure


def draw_evidence(recordings: Sequence[Recording]) -> Any:
    """How two e-values grow from block to block, and the thresholds at which they decide."""
    figure, axes = pyplot.subplots(figsize=(7.2, 3.2))
    for one in _kernel_shown(recordings):
        if one.percent == 2.0:
            continue
        blocks = np.arange(1, SHOWN_BLOCKS + 1)
        label = f"+{one.percent:g} %" if one.percent else "against itself"
        for words, votes, line in (
            ("slower", one.r > math.log1p(POLICY.delta), "-"),
            ("not slower", one.r < math.log1p(POLICY.epsilon), "--"),
        ):
            evidence = log_e_many(np.cumsum(votes[:SHOWN_BLOCKS]), blocks) / math.log(10)
            axes.plot(blocks, evidence, line, color=COLOURS[one.percent], label=f"{label}: for {words}")
    for rate, words in ((POLICY.alpha, "SLOWER"), (POLICY.beta, "NOT-SLOWER")):
        axes.axhline(-math.log10(rate), color="black", linewidth=0.8)
        _label(axes, -math.log10(rate), f"enough for\n{words}")
    axes.set(xlabel="blocks", ylabel="evidence, log10 of the e-value", ylim=(-3, 10))
    _legend(axes, columns=2)
    return figure


def _label(axes: Any, height: float, words: str) -> None:
    """Words to the right of a horizontal line."""
    axes.annotate(words, (1.01, height), xycoords=("axes fraction", "data"), ha="left", va="center")


def _legend(axes: Any, columns: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncol=columns, frameon=False)


def draw_detection(recordings: Sequence[Recording]) -> Any:
    """Chance of SLOWER in two processes against the true slowdown, by drawing runs from recorded blocks."""
    figure, axes = pyplot.subplots(figsize=(7.2, 3.4))
    rng = np.random.default_rng(1)
    for one in sorted((one for one in recordings if one.percent == 0), key=lambda one: one.duration_ns):
        draws = rng.choice(one.r, (RUNS, POLICY.blocks_max))
        label = f"{one.kernel} (blocks scatter by {one.r.std():.2%})"
        axes.plot(100 * EFFECTS, [detection(draws, effect) for effect in EFFECTS], label=label)
    for value, words in ((POLICY.delta, "accepted"), (POLICY.epsilon, "must be found")):
        axes.axvline(100 * value, color="black", linewidth=0.8)
        axes.annotate(words, (100 * value, 0.5), rotation=90, ha="right", va="center")
    axes.set(xlabel="true slowdown, %", ylabel="chance of SLOWER", ylim=(-0.02, 1.02))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def detection(draws: Any, effect: float) -> float:
    """Share of runs that end SLOWER in the first process and in the second."""
    moved = draws + math.log1p(effect)
    return math.prod(float((judge_many(moved, each)[0] == 0).mean()) for each in (POLICY, POLICY.confirming()))


if __name__ == "__main__":
    sys.exit(main())
