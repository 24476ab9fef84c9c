"""Figures derived from counters: ratios and differences, each with its formula.

They are never stored, so that a formula can be put right without recording anything again.  One that lacks an input,
or would divide by zero, is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.judge.counter_verdict import Better, CounterRule, depends_on_caches

PREFIX = "derived:"


@dataclasses.dataclass(frozen=True)
class Derived:
    """One derived figure: what it is made of, and how."""

    name: str
    what: str
    unit: str
    inputs: tuple[str, ...]
    formula: Callable[..., float]
    """Function of the inputs, in their order."""
    better: Better = "neutral"

    @property
    def rule(self) -> CounterRule:
        """Informs only: what gates are the counters it is made of, unless a test gives it a tolerance."""
        traffic = any(depends_on_caches(name) for name in self.inputs)
        return CounterRule(self.name, self.what, self.unit, self.better, None, of_caches=traffic)


def _ratio(
    name: str, what: str, unit: str, above: c.Metric, below: c.Metric, better: Better = "neutral", scale: float = 1.0
) -> Derived:
    return Derived(PREFIX + name, what, unit, (above.name, below.name), lambda a, b: scale * a / b, better)


def _stall_share(reason: str) -> Derived:
    own = c.STALLS[reason].name
    others = tuple(metric.name for metric in c.STALLS.values() if metric.name != own)
    return Derived(f"{PREFIX}stall_share_{reason}", f"share of warps: {reason.replace('_', ' ')}", "%", (own, *others),
                   lambda a, *b: 100 * a / (a + sum(b)))  # fmt: skip


_ALL = (
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
    Derived(PREFIX + "excess_shared_wavefronts", "shared wavefronts beyond the least possible", "wavefronts",
            (c.SHARED_WAVEFRONTS.name, c.SHARED_WAVEFRONTS_IDEAL.name), lambda a, b: max(0.0, a - b), "lower"),
    _ratio("threads_per_instruction", "active threads per instruction", "threads", c.THREAD_INSTRUCTIONS,
           c.INSTRUCTIONS, "higher"),
    Derived(PREFIX + "divergent_branch_share", "divergent branch targets", "%",
            (c.DIVERGENT_TARGETS.name, c.UNIFORM_TARGETS.name), lambda a, b: 100 * a / (a + b), "lower"),
    Derived(PREFIX + "dram_bytes", "DRAM bytes", "bytes", (c.DRAM_READ.name, c.DRAM_WRITE.name),
            lambda a, b: a + b, "lower"),
    Derived(PREFIX + "dram_bytes_per_second", "DRAM bytes per second under ncu", "bytes/s",
            (c.DRAM_READ.name, c.DRAM_WRITE.name, c.DURATION.name), lambda a, b, ns: (a + b) / ns * 1e9),
    Derived(PREFIX + "fp32_operations", "FP32 operations, a fused one counted twice", "operations",
            tuple(c.OPERATIONS[kind].name for kind in ("fadd", "fmul", "ffma")), lambda a, m, f: a + m + 2 * f),
    Derived(PREFIX + "fp64_operations", "FP64 operations, a fused one counted twice", "operations",
            tuple(c.OPERATIONS[kind].name for kind in ("dadd", "dmul", "dfma")), lambda a, m, f: a + m + 2 * f),
    *(_stall_share(reason) for reason in c.STALLS),
)  # fmt: skip

DERIVED: Mapping[str, Derived] = {one.name: one for one in _ALL}

OPTIONAL = frozenset({c.STALLS["imc_miss"].name, c.STALLS["gmma"].name})
"""Inputs that some chips do not have and that count as zero there."""


def derive(counters: Mapping[str, float]) -> dict[str, float]:
    """Every derived figure whose inputs are among the counters."""
    found = {}
    for one in DERIVED.values():
        if all(name in counters or name in OPTIONAL for name in one.inputs) and one.inputs[0] in counters:
            try:
                found[one.name] = float(one.formula(*(counters.get(name, 0.0) for name in one.inputs)))
            except ZeroDivisionError:
                continue
    return found


def with_derived(counters: Mapping[str, float]) -> dict[str, float]:
    """The counters and all that follows from them."""
    return {**counters, **derive(counters)}
