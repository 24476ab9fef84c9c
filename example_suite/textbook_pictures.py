"""The pictures of the textbook, as SVG: a bar per pair, and the roofline.

Needs matplotlib (``pip install --group docs``).  A file carries the figures that it was drawn from as its description,
so that they can be compared without drawing it again: ``drawn_from``.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roofline import Picture

COLOURS = ("#4c72b0", "#c44e52")
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "gpuperf", "font.size": 9, "font.family": "sans-serif",
    "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True,
}  # fmt: skip
TOUCHING = (1.5, 1.4)
"""Ratios of two points, from left to right and up, whose labels would stand on each other."""
COLUMN = 1.6
"""From one family to the next, of those whose data stay in the caches."""
ARROW = {"arrowstyle": "->", "color": COLOURS[0], "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
WIDE = 8
"""Gains from which on the bars have a logarithmic scale."""
_DESCRIPTION = re.compile(r"<dc:description>\s*(.*?)\s*</dc:description>", re.DOTALL)


def drawn_from(file: Path) -> object:
    """The figures in a picture; None where there is no such picture."""
    found = _DESCRIPTION.search(file.read_text(encoding="utf-8")) if file.exists() else None
    return json.loads(html.unescape(found[1])) if found else None


def figures_of(data: object) -> object:
    """As they are kept in a picture."""
    return json.loads(json.dumps(data))


def draw_gains(gains: Mapping[str, float], file: Path) -> None:
    """Bars from 1, which is no gain, to the gain of each pair."""
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7.2, 0.75 + 0.3 * len(gains)))
        names, values = list(gains), list(gains.values())
        axes.barh(names, [value - 1 for value in values], left=1, height=0.6, color=COLOURS[0])
        axes.invert_yaxis()
        axes.axvline(1, color="#444444", linewidth=0.8)
        most = max(*values, 1.2)
        if most >= WIDE:
            axes.set_xscale("log")
            ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= 2 * most]
            axes.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
            axes.set_xticks([], minor=True)
            axes.set_xlim(min(0.9, *values), most * 1.6)
        else:
            axes.set_xlim(min(0.9, *values), 1 + (most - 1) * 1.15)
        for row, value in enumerate(values):
            axes.annotate(f"{value:.3g}", (max(value, 1), row), (4, 0), textcoords="offset points", va="center")
        axes.set_xlabel("times faster, for the same work (1: no gain)")
        _save(figure, gains, file)


def draw_roofline(picture: Picture, file: Path) -> None:
    """Both axes logarithmic; an arrow from the naive to the optimised side of each pair.

    Pairs whose data stay in the caches stand to the right of a line, each family in a column of its own.
    """
    from matplotlib import pyplot

    by_memory = [one.intensity for arrow in picture.arrows for one in (arrow.naive, arrow.optimised) if one.intensity]
    left, edge = min(by_memory) / 2, max(by_memory) * 2
    in_caches = list(dict.fromkeys(arrow.family for arrow in picture.arrows if arrow.naive.intensity is None))
    columns = {family: edge * COLUMN ** (number + 0.7) for number, family in enumerate(in_caches)}
    right = edge * COLUMN ** (len(in_caches) + 0.7)
    numbers = {family: number for number, family in enumerate(dict.fromkeys(a.family for a in picture.arrows), 1)}
    ends: list[tuple[tuple[float, float], int]] = []
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(9.5, 6))
        axes.set(xscale="log", yscale="log", xlim=(left, right))
        axes.set_ylim(min(a.naive.gflops for a in picture.arrows) / 2, max(roof.peak for roof in picture.roofs) * 2)
        _draw_roofs(axes, picture, left)
        for arrow in picture.arrows:
            start, end = (
                (one.intensity or columns[arrow.family], one.gflops) for one in (arrow.naive, arrow.optimised)
            )
            axes.annotate("", end, start, arrowprops=ARROW)
            axes.plot(*start, "o", color=COLOURS[1], markersize=2.5)
            ends.append((end, numbers[arrow.family]))
        for place, label in _labels(ends):
            axes.annotate(label, place, (3, 2), textcoords="offset points", fontsize=8)
        axes.axvline(edge, color="#888888", linewidth=0.8, linestyle=":")
        axes.set_xticks([tick for tick in (0.01, 0.1, 1, 10, 100, 1000, 10000) if left < tick < edge])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("FLOP per byte to and from DRAM, counted   (right of the line: data in the caches)")
        axes.set_ylabel("GFLOP/s")
        legend = "\n".join(f"{number}  {family}" for family, number in numbers.items())
        axes.text(1.02, 1, legend, transform=axes.transAxes, va="top", fontsize=8)
        _save(figure, picture, file)


def _labels(ends: Sequence[tuple[tuple[float, float], int]]) -> list[tuple[tuple[float, float], str]]:
    """Where each number stands; one label for those that would stand on each other."""
    together: list[tuple[tuple[float, float], set[int]]] = []
    for (x, y), number in sorted(ends, key=lambda one: -one[0][1]):
        for (other_x, other_y), numbers in together:
            if max(x / other_x, other_x / x) < TOUCHING[0] and max(y / other_y, other_y / y) < TOUCHING[1]:
                numbers.add(number)
                break
        else:
            together.append(((x, y), {number}))
    return [(place, ", ".join(map(str, sorted(numbers)))) for place, numbers in together]


def _draw_roofs(axes: Any, picture: Picture, left: float) -> None:
    """Slanted: what the memory allows; level: what the arithmetic does."""
    bandwidth, *flats = picture.roofs
    right = axes.get_xlim()[1]
    for roof in flats:
        corner = roof.peak / bandwidth.peak
        axes.plot([left, corner, right], [left * bandwidth.peak, roof.peak, roof.peak], color="#444444", linewidth=1)
        axes.annotate(f"{roof.name}: {roof.peak / 1e3:.3g} TFLOP/s", (corner, roof.peak), (4, 4),
                      textcoords="offset points", fontsize=8)  # fmt: skip
    middle = (left * flats[0].peak / bandwidth.peak) ** 0.5
    axes.annotate(f"{bandwidth.name}: {bandwidth.peak / 1e3:.3g} TB/s", (middle, middle * bandwidth.peak), (-6, 2),
                  textcoords="offset points", ha="right", fontsize=8)  # fmt: skip


def _save(figure: Any, data: Mapping[str, float] | Picture, file: Path) -> None:
    """The same data make the same file, with the same matplotlib."""
    from matplotlib import pyplot

    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None, "Description": json.dumps(data)})
    pyplot.close(figure)
    text = "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").splitlines())
    file.write_text(text + "\n", encoding="utf-8")
