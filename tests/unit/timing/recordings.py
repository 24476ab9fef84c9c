"""Block values recorded on a real GPU (``tests/replays``): read, and drawn from again.

The values of a kernel paired with itself are ``r = s v``: ``s`` is +1 for ABBA and -1 for BAAB, by our own coin, and
``v`` is whatever drift, placement and noise did in that block.  So ``v = s r`` is data of the machine, and any run
with other coins is as likely as the one that was recorded: signs may be drawn afresh.  What comes after what in
``v`` is kept in pieces of eight blocks, between which modules are loaded anew (moving-block bootstrap; Kuensch,
"The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17, 1989).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.timing.blocks import RELOAD_EVERY

FOLDER = Path(__file__).parents[2] / "replays"
Values = NDArray[np.float64]


class Recording(NamedTuple):
    """Blocks of one kernel and one slowdown, in the order they were taken."""

    name: str
    duration_ns: float
    percent: float
    r: Values
    disturbances: Values
    """``v``: the values without the coin."""


def recordings() -> list[Recording]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for one in document["sequences"]:
            r, signs = np.array(one["r"]) * document["unit"], np.where(np.array(list(one["orders"])) == "A", 1.0, -1.0)
            name = f"{document['kernel']} +{one['percent']:g} % {document['timer']}"
            found.append(Recording(name, document["duration_ns"], one["percent"], r, signs * r))
    return found


def drawn(rng: np.random.Generator, v: Values, runs: int, blocks: int) -> Values:
    """New runs of a kernel against itself: recorded values in pieces of eight, with fresh coins."""
    starts = rng.integers(0, v.size - RELOAD_EVERY + 1, (runs, -(-blocks // RELOAD_EVERY), 1))
    picked = v[starts + np.arange(RELOAD_EVERY)].reshape(runs, -1)[:, :blocks]
    return np.asarray(picked * (1.0 - 2.0 * rng.integers(0, 2, picked.shape, dtype=np.int8)))
