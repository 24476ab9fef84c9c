"""Which tests of a run have their first launch paired with itself, as an A/A test (``workload.aa_test``)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

COUNT = 3


def choose(config: pytest.Config, items: Sequence[pytest.Item]) -> set[str]:
    """Their node ids; the same ones in every worker of a run."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    nodes = sorted(item.nodeid for item in items if "gpuperf" in getattr(item, "fixturenames", ()))
    return set(random.Random(run).sample(nodes, min(COUNT, len(nodes))))
