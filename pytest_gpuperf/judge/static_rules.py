"""What makes machine code worse or better: one table, a row per figure; other instruction classes are only noted."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal

from pytest_gpuperf.model.evidence import StaticRecord

Direction = Literal["worse", "better", "neutral"]
Trend = Callable[[float, float], Direction]
"""Before and after, which differ, to a direction."""


def less_is_better(before: float, after: float) -> Direction:
    return "worse" if after > before else "better"


def more_is_better(before: float, after: float) -> Direction:
    return "better" if after > before else "worse"


OCCUPANCY_STEP = 0.1
"""Of the larger occupancy: smaller changes are noted and do not gate.

41.7 -> 39.6 %, one resident block of 20, is what padding a shared tile costs on sm_120, where conflicts cost far more.
"""


def large_steps_count(before: float, after: float) -> Direction:
    """More is better, and changes of less than ``OCCUPANCY_STEP`` say nothing by themselves."""
    step = abs(after - before) / max(before, after)
    return more_is_better(before, after) if round(step, 4) >= OCCUPANCY_STEP else "neutral"


def none_is_best(before: float, after: float) -> Direction:
    """Only the first and the last one count, not how many there are."""
    if before and after:
        return "neutral"
    return "worse" if after else "better"


def noted(_before: float, _after: float) -> Direction:
    """Says nothing about speed by itself."""
    return "neutral"


@dataclasses.dataclass(frozen=True)
class Rule:
    """One figure of the machine code: how to read it and which way is worse."""

    what: str
    read: Callable[[StaticRecord], float | None]
    """None where the figure is not known."""
    trend: Trend
    unit: str = ""
    note: str = ""
    """Said with a change for the worse."""


def _count_of(name: str, record: StaticRecord) -> float:
    return record.profile.opcodes.get(name, 0)


def _occupancy(record: StaticRecord) -> float | None:
    return round(record.occupancy.fraction * 100, 4) if record.occupancy else None


SPILL_STORES = Rule("spill stores", lambda r: r.profile.spill_store_bytes, less_is_better, "bytes")
SPILL_LOADS = Rule("spill loads", lambda r: r.profile.spill_load_bytes, less_is_better, "bytes")
STACK = Rule("stack frame", lambda r: r.profile.stack_bytes, less_is_better, "bytes")
CLASSES_WITH_RULES = ("local_load", "local_store", "fp64", "tensor")
_local_loads, _local_stores, _fp64, _tensor = (functools.partial(_count_of, name) for name in CLASSES_WITH_RULES)
_LOCAL = "an array or spilled registers in local memory"
LOCAL_LOADS = Rule("instructions: local_load", _local_loads, none_is_best, note=_LOCAL)
LOCAL_STORES = Rule("instructions: local_store", _local_stores, none_is_best, note=_LOCAL)
FP64 = Rule("instructions: fp64", _fp64, none_is_best, note="a double literal such as 1.0?")
TENSOR = Rule("instructions: tensor", _tensor, lambda was, now: none_is_best(now, was), note="tensor cores lie idle")
OCCUPANCY = Rule("occupancy", _occupancy, large_steps_count, "%")
REGISTERS = Rule("registers", lambda r: r.profile.registers, noted)

RULES: tuple[Rule, ...] = (
    SPILL_STORES, SPILL_LOADS, STACK, OCCUPANCY, REGISTERS, LOCAL_LOADS, LOCAL_STORES, FP64, TENSOR,
    Rule("static shared memory", lambda r: r.profile.shared_bytes, noted, "bytes"),
    Rule("dynamic shared memory", lambda r: r.dynamic_shared_bytes, noted, "bytes"),
    Rule("constant memory", lambda r: r.profile.constant_bytes, noted, "bytes"),
    Rule("barriers", lambda r: r.profile.barriers, noted),
    Rule("instructions", lambda r: r.profile.instructions, noted),
    Rule("code size", lambda r: r.profile.code_bytes, noted, "bytes"),
)  # fmt: skip
"""In the order in which changes are shown."""
