"""Figures derived from counters: ratios and differences, each with its formula.

They are never stored, so that a formula can be put right without recording anything again.  One that lacks an input,
or would divide by zero, is left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping

from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.judge.counters import Better, Metric

PREFIX = "derived:"


@dataclasses.dataclass(frozen=True)
class Derived(Metric):
    """One derived figure: it informs only, for what gates are its inputs, unless a test gives it a tolerance."""

    inputs: tuple[str, ...] = dataclasses.field(kw_only=True)
    formula: Callable[..., float] = dataclasses.field(kw_only=True)
    """Function of the inputs, in their order."""


def _derived(
    name: str, what: str, unit: str, inputs: Iterable[Metric], formula: Callable[..., float], better: Better = "neutral"
) -> Derived:
    names = tuple(metric.name for metric in inputs)
    return Derived(PREFIX + name, what, unit, better, None, inputs=names, formula=formula)


def _ratio(name: str, what: str, unit: str, above: Metric, below: Metric, better: Better) -> Derived:
    return _derived(name, what, unit, (above, below), operator.truediv, better)


def _share(first: float, *others: float) -> float:
    return 100 * first / (first + sum(others))


def _operations(add: float, multiply: float, fused: float) -> float:
    return add + multiply + 2 * fused


def _stall_share(reason: str) -> Derived:
    own = c.STALLS[reason]
    inputs = (own, *(metric for metric in c.STALLS.values() if metric is not own))
    return _derived(f"stall_share_{reason}", f"share of warps: {reason.replace('_', ' ')}", "%", inputs, _share)


DERIVED: Mapping[str, Derived] = {one.name: one for one in (
    _ratio("sectors_per_load_request", "sectors per global load request", "sectors", c.LOAD_SECTORS, c.LOAD_REQUESTS,
           "lower"),
    _ratio("sectors_per_store_request", "sectors per global store request", "sectors", c.STORE_SECTORS,
           c.STORE_REQUESTS, "lower"),
    _ratio("bytes_per_load_sector", "bytes asked for per sector loaded", "bytes", c.USEFUL_LOAD_BYTES, c.LOAD_SECTORS,
           "higher"),
    _ratio("bytes_per_store_sector", "bytes given per sector stored", "bytes", c.USEFUL_STORE_BYTES, c.STORE_SECTORS,
           "higher"),
    _ratio("shared_wavefronts_per_load", "shared wavefronts per load", "wavefronts", c.SHARED_LOAD_WAVEFRONTS,
           c.SHARED_LOADS, "lower"),
    _ratio("shared_wavefronts_per_store", "shared wavefronts per store", "wavefronts", c.SHARED_STORE_WAVEFRONTS,
           c.SHARED_STORES, "lower"),
    _derived("excess_shared_wavefronts", "shared wavefronts beyond the least possible", "wavefronts",
             (c.SHARED_WAVEFRONTS, c.SHARED_WAVEFRONTS_IDEAL), lambda all_, ideal: max(0.0, all_ - ideal), "lower"),
    _ratio("threads_per_instruction", "active threads per instruction", "threads", c.THREAD_INSTRUCTIONS,
           c.INSTRUCTIONS, "higher"),
    _derived("divergent_branch_share", "divergent branch targets", "%", (c.DIVERGENT_TARGETS, c.UNIFORM_TARGETS),
             _share, "lower"),
    _derived("dram_bytes", "DRAM bytes", "bytes", (c.DRAM_READ, c.DRAM_WRITE), operator.add, "lower"),
    _derived("dram_bytes_per_second", "DRAM bytes per second under ncu", "bytes/s",
             (c.DRAM_READ, c.DRAM_WRITE, c.DURATION), lambda read, written, ns: (read + written) / ns * 1e9),
    _derived("fp32_operations", "FP32 operations, a fused one counted twice", "operations",
             [c.OPERATIONS[kind] for kind in ("fadd", "fmul", "ffma")], _operations),
    _derived("fp64_operations", "FP64 operations, a fused one counted twice", "operations",
             [c.OPERATIONS[kind] for kind in ("dadd", "dmul", "dfma")], _operations),
    *map(_stall_share, c.STALLS),
)}  # fmt: skip

OPTIONAL = frozenset({c.STALLS["imc_miss"].name, c.STALLS["gmma"].name})
"""Inputs that some chips do not have and that count as zero there."""


def derive(counters: Mapping[str, float]) -> dict[str, float]:
    """Every derived figure whose inputs are among the counters."""
    found = {}
    for one in DERIVED.values():
        if one.inputs[0] in counters and all(name in counters or name in OPTIONAL for name in one.inputs):
            with contextlib.suppress(ZeroDivisionError):
                found[one.name] = float(one.formula(*(counters.get(name, 0.0) for name in one.inputs)))
    return found
