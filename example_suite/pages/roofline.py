"""The roofline of the suite: the pairs under the roofs of the GPU, as figures and as an SVG.

An arrow goes from the naive side of a pair to the optimised one; a point is its FLOP per byte of DRAM, and its GFLOP/s.
Operations are those that the test declares of both sides, or else those in single precision that were counted of both.
Left out are pairs without either, and pairs whose data stay in the caches.

Drawing needs matplotlib (``pip install --group docs``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pages.counted import FIGURES
from pages.facts import PAIRS, Pair, Recorded

LEAST_BYTES = 2**23
"""Of DRAM traffic, for an intensity that says anything; below it the data stay in the caches."""
BLUE, RED, GREY = "#4c72b0", "#c44e52", "#444444"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "gpuperf", "font.size": 9, "font.family": "sans-serif",
    "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True,
}  # fmt: skip
ARROW = {"arrowstyle": "->", "color": BLUE, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
TEXT: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}
TOUCHING = (1.5, 1.4)
"""Ratios of two points, from left to right and up, whose labels would overlap."""
Point = tuple[float, float]
"""FLOP per byte to and from DRAM; GFLOP/s."""
Arrow = tuple[str, Point, Point]
"""The family, and both sides of the pair."""


ROOFS = {"tensor cores": 989_000.0, "FP32": 67_000.0}
BANDWIDTH = 4800.0
"""GFLOP/s and GB/s of an H200 by its data sheet, in FP16 without sparsity and in FP32."""


def arrows(recorded: Recorded) -> list[Arrow]:
    """In the order of the pairs that have one."""
    found = []
    for pair in PAIRS:
        ways = zip(*(_points(pair, name, recorded) for name in pair.names), strict=True)
        found += [(pair.family, naive, optimised) for naive, optimised in ways if naive and optimised][:1]
    return found


def _points(pair: Pair, workload: str, recorded: Recorded) -> Sequence[Point | None]:
    """Of a workload, by declared operations and by counted ones."""
    time, static, of = (get(pair, workload) for get in (recorded.time, recorded.static, recorded.counted))
    ns = recorded.time_ns(pair, workload)
    try:
        moved, counted = (FIGURES[name](of) for name in ("dram_bytes", "single_precision_operations"))
    except LookupError:
        return None, None
    single = static is not None and not {"fp64", "tensor"} & static.profile.opcodes.keys()
    amounts = time.flops if time else None, counted if single else None
    known = ns is not None and moved >= LEAST_BYTES
    return [(float(f"{flops / moved:.3g}"), float(f"{flops / ns:.3g}")) if known and flops else None
            for flops in amounts]  # fmt: skip


def svg_end(arrows: Sequence[Arrow]) -> str:
    """The last line of the picture's file: what it was drawn from, so that it need not be drawn to be compared."""
    return f"<!-- {json.dumps(arrows)} -->\n"


def draw(arrows: Sequence[Arrow], file: Path) -> None:
    """Both axes logarithmic; a number for each family."""
    from matplotlib import pyplot

    numbers = {family: number for number, family in enumerate(dict.fromkeys(family for family, *_ in arrows), 1)}
    known = [point for _, *ends in arrows for point in ends]
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(9.5, 6))
        axes.set(xscale="log", yscale="log", xlabel="FLOP per byte to and from DRAM, counted", ylabel="GFLOP/s",
                 xlim=(min(x for x, _ in known) / 2, max(x for x, _ in known) * 2),
                 ylim=(min(y for _, y in known) / 2, max(ROOFS.values()) * 2))  # fmt: skip
        left, right = axes.get_xlim()
        for name, peak in ROOFS.items():
            corner = peak / BANDWIDTH
            axes.plot([left, corner, right], [left * BANDWIDTH, peak, peak], color=GREY, linewidth=1)
            axes.annotate(f"{name}: {peak / 1e3:.0f} TFLOP/s", (corner, peak), (4, 4), **TEXT)
        axes.annotate(f"DRAM: {BANDWIDTH / 1e3:.1f} TB/s", (0.2, 0.2 * BANDWIDTH), (-6, 2), ha="right", **TEXT)
        for _, naive, optimised in arrows:
            axes.annotate("", optimised, naive, arrowprops=ARROW)
            axes.plot(*naive, "o", color=RED, markersize=2.5)
        for place, label in _labels([(end, numbers[family]) for family, _, end in arrows]):
            axes.annotate(label, place, (3, 2), **TEXT)
        legend = "\n".join(f"{number}  {family}" for family, number in numbers.items())
        axes.text(1.02, 1, legend, transform=axes.transAxes, va="top", fontsize=8)
        figure.savefig(file, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("".join(f"{line.rstrip()}\n" for line in lines) + svg_end(arrows), encoding="utf-8")


def _labels(ends: Sequence[tuple[Point, int]]) -> list[tuple[Point, str]]:
    """Where each number is; one label for those that would overlap."""
    together: dict[Point, set[int]] = {}
    for (x, y), number in sorted(ends, key=lambda one: -one[0][1]):
        near = ((u, v) for u, v in together
                if max(x / u, u / x) < TOUCHING[0] and max(y / v, v / y) < TOUCHING[1])  # fmt: skip
        together.setdefault(next(near, (x, y)), set()).add(number)
    return [(place, ", ".join(map(str, sorted(numbers)))) for place, numbers in together.items()]
