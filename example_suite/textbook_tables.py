"""Tables of a page of the textbook: what its workloads are, and what each pair gains."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pairs import PAIRS, Pair
from recorded import GPU, Recorded

from pytest_gpuperf.formatting import duration

WIDTH = 120
WALL = """\
Gains are by the clock on the wall (claims {claims}): the times of the plugin are sums over copies and kernels, which do
not become less if they overlap."""


def pairs_of(family: str) -> list[Pair]:
    return [pair for pair in PAIRS if pair.family == family]


def workloads(pairs: Sequence[Pair], recorded: Recorded) -> str:
    """What each name of the page runs: its kernel and its launch."""
    runs = {name: pair for pair in pairs for name in (pair.naive, pair.optimised)}
    rows = [[f"`{name}`", *_launch(pair, name, recorded)] for name, pair in runs.items()]
    return table(["workload", "kernel", "blocks", "threads of a block"], rows)


def _launch(pair: Pair, name: str, recorded: Recorded) -> tuple[str, str, str]:
    static, time = recorded.static(pair, name), recorded.time(pair, name)
    if static is None:
        return "several operations from Python: see the test", "", ""
    launched = time or static
    return f"`{static.kernel}`", shape(launched.grid), shape(launched.block)


def gains(pairs: Sequence[Pair], recorded: Recorded) -> str:
    """Times and gain of each pair, what its naive side does, and what the plugin calls that."""
    rows = []
    works = any(pair.work != 1 for pair in pairs)
    for pair in pairs:
        gain = recorded.gain(pair)
        times = [recorded.time_ns(pair, name) for name in (pair.naive, pair.optimised)]
        shown = ["" if ns is None or pair.wall else duration(ns) for ns in times]
        rows.append([f"{pair.optimised} over {pair.naive}", *shown, *([f"{pair.work:g}"] if works else []),
                     "not on record yet" if gain is None else number(gain),
                     pair.why, pair.cause or "several things"])  # fmt: skip
    family = pairs[0].family
    said = f"Gain is how many times faster the same work is done on an {GPU.removeprefix('nvidia-').upper()}: "
    if works:
        said += ("the time of the naive side over that of the optimised one, times *work*: how many times the naive "
                 "side's work the optimised one does.")  # fmt: skip
    else:
        said += "the time of the naive side over that of the optimised one. Both do the same work."
    picture = f"![Gains of {family}](../pictures/textbook/{family}.svg)" if recorded_gains(family, recorded) else ""
    walls = [pair.wall for pair in pairs if pair.wall]
    noted = wrapped(WALL.format(claims=", ".join(walls))) if walls else ""
    head = ["pair", "naive", "optimised", *(["work"] if works else []), "gain", "the naive side", "cause"]
    return "\n\n".join(part for part in (wrapped(said), picture, table(head, rows), noted) if part)


def recorded_gains(family: str, recorded: Recorded) -> dict[str, float]:
    """Gain per work done of each pair on record, to three digits: what the family's picture shows."""
    gains = {f"{pair.optimised} over {pair.naive}": recorded.gain(pair) for pair in pairs_of(family)}
    return {name: float(f"{gain:.3g}") for name, gain in gains.items() if gain is not None}


def shape(of: tuple[int, int, int] | None) -> str:
    sides = list(of or ())
    while len(sides) > 1 and sides[-1] == 1:
        del sides[-1]
    return " x ".join(map(str, sides)) or "unknown"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def number(value: float) -> str:
    """Three digits; counts in full up to a million."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} million" if value < 1e9 else f"{value / 1e9:.3g} billion"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def wrapped(text: str, indent: str = "") -> str:
    return "\n".join(
        textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)
    )
