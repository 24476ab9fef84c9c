"""Every naive/optimised pair of the suite: which two workloads, and what the naive one is slow of.

The pairs are in ``pairs.json``, one a line.  Both workloads of a pair are measured by one test, under these names.
A test's optimised workload has one naive sibling: of two that differ in two things, there is a third one in between
(naive, coalesced, padded).  ``--naive-siblings`` turns the one into the other, and the gate has to notice; see
``siblings.py``.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two workloads that do the same, one of them slowly."""

    family: str
    """``transpose32``: ``kernels/transpose32.cu`` and ``test_transpose32.py``."""
    test: str
    """The test function that measures both."""
    optimised: str
    naive: str
    cause: str
    """What dominates, by its key among the causes of ``pytest_gpuperf.advise``; empty if no single one does."""
    why: str
    """What the naive one does."""
    work: float = 1.0
    """How many times the naive one's work the optimised one does."""
    wall: str = ""
    """Claim whose figure is the gain by the clock on the wall: of callables that overlap what they launch, of which the
    plugin's time, a sum over copies and kernels, sees nothing."""

    @property
    def module(self) -> str:
        return f"test_{self.family}.py"


PAIRS: tuple[Pair, ...] = tuple(
    Pair(**line) for line in json.loads(Path(__file__).with_name("pairs.json").read_text(encoding="utf-8"))
)
