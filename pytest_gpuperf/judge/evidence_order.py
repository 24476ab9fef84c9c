"""The order of evidence: measured time outranks counters and machine code of the GPU that it was measured on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.verdict import Judgement, Verdict

PROVEN_NOT_SLOWER = frozenset({Verdict.SAME, Verdict.FASTER})
"""Verdicts on time that outrank what got worse by other evidence."""


def in_order(judgements: Sequence[Judgement], arch: str) -> tuple[Judgement, ...]:
    """The judgements of one workload: what got worse on the GPU of ``arch`` (``sm_90``) and is not slower is SAME.

    Machine code for other architectures is judged as it is without a GPU: nobody measured it.
    """
    time = next((one for one in judgements if one.kind == "time" and one.verdict in PROVEN_NOT_SLOWER), None)
    if time is None:
        return tuple(judgements)
    return tuple(_outranked(one, time) if _is_beside(one, time, arch) else one for one in judgements)


def _is_beside(one: Judgement, time: Judgement, arch: str) -> bool:
    """Whether it got worse on the GPU that the time is of."""
    if one.kind == "static":
        return one.verdict is Verdict.WORSE and plain(one.target) == plain(arch)
    return one.verdict is Verdict.WORSE and one.kind == "counters" and one.target == time.target


def _outranked(one: Judgement, time: Judgement) -> Judgement:
    reason = f"worse, not slower: {one.reason}; its time on {time.target} is {time.verdict.value}"
    return msgspec.structs.replace(one, verdict=Verdict.SAME, reason=reason)
