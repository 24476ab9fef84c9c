"""Shares of roofs by counters, declared figures and the machine code, and a change of the limiting one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from advise_samples import dry, load, profile, record, side
from record_samples import identity_of, time_of

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.roofs import change_of_limit, shares_of

ROOFS = dict.fromkeys(("shared", "fp64", "int32"), 3e13)
ROOFS |= {"dram": 4e12, "l2": 6e12, "fp32": 6e13, "bf16": 8e14, "fp8": 16e14}
US = 1000.0
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
L1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
DRAM = {"dram__bytes_read.sum": 3e6, "dram__bytes_write.sum": 6e5}


def peak(name: str) -> float:
    return ROOFS.get(name, 0.0)


def timed(*arguments: str, opcodes: dict[str, int] | None = None, counters: dict[str, float] | None = None,
          estimate: Any = None, **declared: Any) -> Side:  # fmt: skip
    """A run of one microsecond."""
    time = time_of(US, identity_of(*arguments), **declared)
    code = msgspec.structs.replace(record(), profile=profile(opcodes=opcodes or {"fp32": 20}))
    return side(code, time_ns=US, record=time, l2_bytes=1 << 20, counters=counters or {}, estimate=estimate)


@pytest.mark.parametrize(("given", "expected"), [
    ({"bytes": 2_000_000}, {"dram": (0.5, "declared")}),
    ({"bytes": 600_000, "cache": "warm"}, {"l2": (0.1, "declared")}),
    ({"bytes": 2_000_000, "cache": "warm"}, {"dram": (0.5, "declared")}),
    ({"flops": 30_000_000}, {"fp32": (0.5, "declared")}),
    ({"flops": 30_000_000, "opcodes": {"fp64": 3, "fp32": 1}}, {"fp64": (1.0, "declared")}),
    ({"flops": 400_000_000, "opcodes": {"tensor": 1}}, {"bf16": (0.5, "declared")}),
    ({"flops": 400_000_000, "opcodes": {"tensor": 1}, "array": "float8_e4m3fn[64]"}, {"fp8": (0.25, "declared")}),
    ({"flops": 1, "opcodes": {"tensor": 1}, "array": "float16[64]"}, {}),  # a roof that is not known
    ({"bytes": 1_000_000, "counters": DRAM}, {"dram": (0.9, "counted")}),
    ({"counters": {"dram__bytes_read.sum": 3e6}}, {}),
    ({"counters": {SASS.format(f"f{one}"): 1e7 for one in ("add", "mul", "fma")}}, {"fp32": (1.0, "counted")}),
    ({"counters": {"lts__t_sectors.sum": 2e5, L1.format("ld"): 9e4, L1.format("st"): 3750}}, {"l2": (0.5, "counted")}),
    ({"counters": {SASS.format("integer"): 1e8}}, {"int32": (1.0, "counted")}),  # by two units at once
    ({"counters": {"memory_l1_wavefronts_shared": 117_187.5}}, {"shared": (0.5, "counted")}),
    ({"estimate": dry({"fp32": 100.0}, load(), load(op="shared_load"), warps=1000)},
     {"l2": (0.085, "estimated"), "shared": (0.017, "estimated"), "fp32": (0.107, "estimated")}),
    ({"estimate": dry()}, {}),  # of no launch
])  # fmt: skip
def test_each_source_counts_for_its_roof(given: dict[str, Any], expected: dict[str, tuple[float, str]]) -> None:
    array = given.pop("array", "")
    found = shares_of(timed(*filter(None, [array]), **given), peak)
    assert {one.roof: (round(one.fraction, 3), one.source) for one in found} == expected


def test_the_closest_roof_comes_first_and_says_its_rate() -> None:
    found = shares_of(timed(bytes=3_640_000, flops=6_000_000), peak)
    assert list(map(str, found)) == [
        "91 % of DRAM's roof (3.64 TB/s, declared)", "10 % of FP32's roof (6 TFLOP/s, declared)",
    ]  # fmt: skip
    (tensor,) = shares_of(timed(flops=400_000_000, opcodes={"tensor": 1}), peak)
    assert str(tensor) == "50 % of the roof of the BF16 tensor cores (400 TFLOP/s, declared)"


@pytest.mark.parametrize(("before", "after", "words"), [
    ({"bytes": 3_600_000}, {"bytes": 3_600_000, "time_ns": 2 * US}, ""),
    ({"bytes": 3_600_000}, {"bytes": 3_600_000, "flops": 60_000_000, "time_ns": 1.5 * US},
     "the limit changed: at 90 % of DRAM's roof (3.6 TB/s, declared) before, at 67 % of FP32's roof (40 TFLOP/s, "
     "declared) now"),
    ({"bytes": 3_600_000, "flops": 50_000_000}, {"bytes": 3_600_000, "flops": 56_000_000}, ""),  # still there
    ({"bytes": 2_000_000}, {"flops": 60_000_000}, ""),  # that was no limit
    ({"estimate": dry({"fp32": 100.0}, warps=10_000)}, {"bytes": 3_600_000}, ""),
    ({"counters": DRAM}, {"flops": 60_000_000}, ""),  # a count and a declaration are two measures
])  # fmt: skip
def test_another_limit_is_a_remark(before: dict[str, Any], after: dict[str, Any], words: str) -> None:
    time_ns = after.pop("time_ns", US)
    now = msgspec.structs.replace(timed(**after), time_ns=time_ns)
    assert change_of_limit(timed(**before), now, peak) == words
