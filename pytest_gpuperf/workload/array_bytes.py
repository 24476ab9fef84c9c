"""How much data a launch is given."""

from __future__ import annotations

import math

from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.launch import Launch


def array_bytes(launch: Launch) -> int:
    """Bytes of the arrays that a launch is given, overlaps counted once; what an address stands for is not in it."""
    spans = []
    for place, argument in enumerate(launch.arguments):
        facts = array_facts(argument)
        if facts is not None:
            start = facts.address if facts.address is not None else -(place + 1) << 60  # a host's, in simulations
            spans.append((start, start + facts.dtype.itemsize * math.prod(facts.shape)))
    covered, reached = 0, min(spans, default=(0, 0))[0]
    for start, end in sorted(spans):
        covered += max(end - max(start, reached), 0)
        reached = max(end, reached)
    return covered
