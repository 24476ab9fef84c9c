"""The share of each roof of its GPU that one run reaches, and the roof that limits it.

A share is an amount over the time of the run, over what the GPU does per second at most.  Amounts are counted by Nsight
Compute, or declared by the test, or estimated from the machine code, in this order of trust.  An instruction counts as
a multiply-add, whichever it is: it takes its unit for as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from pytest_gpuperf.advise.comparison import SECTOR_BYTES, WARP, Side
from pytest_gpuperf.advise.usage_from_code import WAVEFRONT_BYTES
from pytest_gpuperf.advise.usage_from_counters import DRAM, SECTORS, SHARED_WAVEFRONTS, WAYS
from pytest_gpuperf.formatting import quantity
from pytest_gpuperf.model.roofs import ROOFS
from pytest_gpuperf.model.time_record import TimeRecord

Source = Literal["counted", "declared", "estimated"]
OPERATIONS = 2
"""Of a multiply-add."""
LEAST_SHARE, LEAST_FALL = 0.6, 0.1
"""Share of a roof that is called a limit, as Nsight Compute's rules of the speed of light have it, and the fall of that
share that is one."""
_SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
_COUNTED: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "dram": (1, (DRAM.format("read"), DRAM.format("write"))),
    "shared": (WAVEFRONT_BYTES, (SHARED_WAVEFRONTS,)),
    "fp32": (OPERATIONS, tuple(_SASS.format(f"f{one}") for one in ("add", "mul", "fma"))),
    "fp64": (OPERATIONS, tuple(_SASS.format(f"d{one}") for one in ("add", "mul", "fma"))),
    "int32": (OPERATIONS, (_SASS.format("integer"),)),
}
"""Of a roof: what one count amounts to, and the metrics to add up; without one of them nothing is known."""
_OF_L1 = tuple(f"lts__t_sectors_srcunit_tex_op_{way}.sum" for way in ("read", "write"))
_BOUNDS = ("lts__t_sectors.sum",), tuple(SECTORS.format(way) for way in WAYS)
"""Sectors that the L1 asks of the L2; without these counts the fewer ones of the L2, whose halves exchange some, and of
the L1, which has some itself."""
_TENSOR = {"float8": "fp8", "bfloat16": "bf16", "float16": "fp16"}
"""How an array of a launch is described, and the roof of products of such; others are taken for bfloat16."""


class Share(NamedTuple):
    """Part of a roof that one run reaches."""

    roof: str
    """Key of ``ROOFS``."""
    fraction: float
    """0 to 1; above 1 where the test declares more than is moved, as of a cache."""
    per_second: float
    source: Source

    def __str__(self) -> str:
        """``91 % of DRAM's roof``"""
        words, unit = ROOFS[self.roof]
        name = f"the roof of {words}" if words.startswith("the ") else f"{words}'s roof"
        return f"{self.fraction:.0%} of {name} ({quantity(self.per_second, unit)}, {self.source})".replace("%", " %", 1)


def shares_of(side: Side, peak: Callable[[str], float]) -> list[Share]:
    """The shares of a side with a time, the largest first; ``peak`` says what a roof is, or 0 where that is unknown.

    An estimate above the L2's roof is left out: the L1 served it.  No other count or estimate is more than all.
    """
    if not side.time_ns:
        return []
    amounts: dict[str, tuple[float, Source]] = {}
    amounts |= {roof: (amount, "estimated") for roof, amount in _estimated(side)}
    amounts |= {roof: (amount, "declared") for roof, amount in _declared(side)}
    amounts |= {roof: (amount, "counted") for roof, amount in _counted(side.counters)}
    rates = ((roof, amount / side.time_ns * 1e9, source) for roof, (amount, source) in amounts.items() if amount)
    found = [
        Share(roof, rate / most if source == "declared" else min(rate / most, 1.0), rate, source)
        for roof, rate, source in rates
        if (most := peak(roof)) and (rate <= most or (roof, source) != ("l2", "estimated"))
    ]
    return sorted(found, key=lambda one: -one.fraction)


def change_of_limit(before: Side, after: Side, peak: Callable[[str], float]) -> str:
    """A remark where another roof limits the run now than before; empty where none did, or the same does.

    Estimates do not count: they compare two versions, and none is a prediction.  Counts do where both sides have some.
    """
    if not (before.counters and after.counters):
        before, after = (msgspec.structs.replace(side, counters={}) for side in (before, after))
    old, new = ([one for one in shares_of(side, peak) if one.source != "estimated"] for side in (before, after))
    if not old or not new or old[0].fraction < LEAST_SHARE or new[0].roof == old[0].roof:
        return ""
    left = next((one.fraction for one in new if one.roof == old[0].roof), 0.0)
    return f"the limit changed: at {old[0]} before, at {new[0]} now" if left < old[0].fraction - LEAST_FALL else ""


def _counted(counters: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    def total(names: Sequence[str]) -> float | None:
        return sum(counters[name] for name in names) if all(name in counters for name in names) else None

    found = {roof: (factor, total(names)) for roof, (factor, names) in _COUNTED.items()}
    exact, bounds = total(_OF_L1), [total(names) for names in _BOUNDS]
    fewer = None if None in bounds else min(filter(None, bounds), default=0.0)
    found["l2"] = SECTOR_BYTES, fewer if exact is None else exact
    yield from ((roof, factor * count) for roof, (factor, count) in found.items() if count is not None)


def _declared(side: Side) -> Iterator[tuple[str, float]]:
    """Bytes count for DRAM, or for the L2 where a warm one holds them; operations for the unit that the code uses."""
    record = side.record
    if record is None:
        return
    if record.bytes is not None:
        yield "l2" if record.cache == "warm" and record.bytes <= side.l2_bytes else "dram", record.bytes
    if record.flops is not None and side.static is not None:
        yield _unit(side.static.profile.opcodes, record), record.flops


def _unit(opcodes: Mapping[str, int], record: TimeRecord) -> str:
    if opcodes.get("tensor"):
        arrays = record.identity.arguments
        return next((roof for kind, roof in _TENSOR.items() if any(one.startswith(kind) for one in arrays)), "bf16")
    return "fp64" if opcodes.get("fp64", 0) > opcodes.get("fp32", 0) else "fp32"


def _estimated(side: Side) -> Iterator[tuple[str, float]]:
    """What all warps of the launch do; one that data send another way does more or less."""
    run = side.estimate
    if run is None or not run.warps:
        return
    sectors = sum(a.times * (a.sectors or 0) for a in run.accesses if a.op.startswith("global"))
    wavefronts = sum(a.times * (a.wavefronts or 0) for a in run.accesses if a.op.startswith("shared"))
    yield "l2", run.warps * SECTOR_BYTES * sectors
    yield "shared", run.warps * WAVEFRONT_BYTES * wavefronts
    for roof, name in (("fp32", "fp32"), ("fp64", "fp64"), ("int32", "integer")):
        yield roof, run.warps * WARP * OPERATIONS * run.executed.get(name, 0)
