"""Block values recorded on a real GPU (``tests/replays``): read, and drawn from again.

The values of a kernel paired with itself are ``r = s v``: ``s`` is +1 for ABBA and -1 for BAAB, by our own coin, and
``v`` is whatever drift, placement and noise did in that block.  So ``v = s r`` is data of the machine, and any run
with other coins is as likely as the one that was recorded: signs may be drawn afresh.  What comes after what in
``v`` is kept in pieces of eight blocks, between which modules are loaded anew (moving-block bootstrap; Kuensch,
"The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17, 1989).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.timing.blocks import RELOAD_EVERY

FOLDER = Path(__file__).parents[2] / "replays"
Values = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Sequence:
    """Blocks of one kernel and one slowdown, in the order they were taken."""

    kernel: str
    timer: str
    duration_ns: float
    percent: float
    ratio: float
    """The true one, by instruction count or as calibrated."""
    r: Values
    orders: str
    """``A`` for ABBA, ``B`` for BAAB."""
    verdicts: tuple[tuple[str, int], ...]
    """Of one run after another on these blocks, when they were recorded: decision and blocks used."""

    @property
    def name(self) -> str:
        return f"{self.kernel} +{self.percent:g} % {self.timer}"

    @property
    def disturbances(self) -> Values:
        """``v``: the values without the coin."""
        signs = np.where(np.array(list(self.orders)) == "A", 1.0, -1.0)
        return np.asarray(signs * self.r)


def recordings(folder: Path = FOLDER) -> list[Sequence]:
    """All that is recorded; empty if nothing is."""
    return [one for path in sorted(folder.glob("*.json")) for one in read(path)]


def read(path: Path) -> list[Sequence]:
    document = json.loads(path.read_text(encoding="utf-8"))
    return [
        Sequence(
            kernel=document["kernel"], timer=document["timer"], duration_ns=document["duration_ns"],
            percent=one["percent"], ratio=one["ratio"], r=np.array(one["r"]) * document["unit"], orders=one["orders"],
            verdicts=tuple((decision, blocks) for decision, blocks in one["verdicts"]),
        )
        for one in document["sequences"]
    ]  # fmt: skip


def drawn(rng: np.random.Generator, v: Values, runs: int, blocks: int, *, coins: bool = True) -> Values:
    """New runs of a kernel against itself: recorded values in pieces of eight, with fresh coins if ``coins``."""
    pieces = -(-blocks // RELOAD_EVERY)
    starts = rng.integers(0, v.size - RELOAD_EVERY + 1, (runs, pieces, 1))
    picked = v[starts + np.arange(RELOAD_EVERY)].reshape(runs, -1)[:, :blocks]
    return picked if not coins else np.asarray(picked * (1.0 - 2.0 * rng.integers(0, 2, picked.shape, dtype=np.int8)))
