"""A/A self-pairs: a few launches of every gated run are paired with themselves.

Whatever such a pair shows comes from the machine: if one differs from itself, the run's verdicts mean nothing.
See docs/explanation/statistics.md, "What the run says of the machine".
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

COUNT = 3
BUDGET_S = 0.2
"""Wall-clock bound of one, seconds; a block more may be under way."""
LONGEST_NS = 1_000_000.0
"""A longer launch could not come out different from itself within that time."""


def choose(config: pytest.Config, items: Sequence[pytest.Item]) -> set[str]:
    """Node ids of the tests whose first launch is paired with itself; the same ones in every worker of a run."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    nodes = sorted(item.nodeid for item in items if "gpuperf" in getattr(item, "fixturenames", ()))
    return set(random.Random(run).sample(nodes, min(COUNT, len(nodes))))
