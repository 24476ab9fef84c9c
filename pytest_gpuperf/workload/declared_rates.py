"""What a test declares of a workload, held against what its GPU can do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.judge.plausibility import Implausible, implausible
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.workload.request import Request

_LEAST_ADDRESS = 1 << 32
"""A whole number from here on may be an address, of data whose size is not known."""


def beyond_limits(facts: DeviceFacts, request: Request, rounds: Sequence[Round]) -> Implausible:
    """What the figures of these rounds say that cannot be; nothing without rounds."""
    if not rounds:
        return Implausible()
    time_ns = mean_time_ns(rounds)
    size = array_bytes(request.launch) if request.launch is not None else None
    return implausible(facts, time_ns, bytes=request.bytes, flops=request.flops, cache=request.cache, array_bytes=size)


def array_bytes(launch: Launch) -> int | None:
    """Bytes of all arrays that a launch is given, overlaps counted once; None where an argument may be an address."""
    others = (argument for argument in launch.arguments if array_facts(argument) is None)
    if any(not isinstance(one, int | float | complex | np.number | np.bool_) or abs(one) >= _LEAST_ADDRESS
           for one in others):  # fmt: skip
        return None
    return known_array_bytes(launch)


def known_array_bytes(launch: Launch) -> int:
    """Bytes of the arrays that a launch is given, overlaps counted once; what an address stands for is not in it."""
    spans = []
    for place, argument in enumerate(launch.arguments):
        facts = array_facts(argument)
        if facts is None:
            continue
        size = facts.dtype.itemsize
        for length in facts.shape:
            size *= length
        start = facts.address if facts.address is not None else -(place + 1) << 60  # a host's, in simulations
        spans.append((start, start + size))
    return _covered(spans)


def _covered(spans: Sequence[tuple[int, int]]) -> int:
    covered, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        covered += max(end - begin, 0)
        reached = end if reached is None else max(end, reached)
    return covered
