"""Metrics to collect and to gate: sets, single names, figures derived from them and tests' own tolerances.

Derived figures are ratios and differences, each with its formula.  They are never stored, so that a formula can be put
right without recording anything again.  One that lacks an input, or would divide by zero, is left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping

from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.counters.catalogue import METRICS, SETS
from pytest_gpuperf.judge.counters import Better, Metric
from pytest_gpuperf.model.limits import is_metric
from pytest_gpuperf.model.time_record import CacheMode

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


# --- what a run asks for -------------------------------------------------------------------------

TRAFFIC = ("dram__", "lts__")
"""Beginnings of metrics that depend on what the caches held."""


class BadMetric(ValueError):
    """A metric's name or tolerance is not valid; the message says which and what would be."""


def own_metrics(given: Iterable[str] | Mapping[str, object]) -> dict[str, float | None]:
    """``metrics=`` of a test: name to tolerance; None: compared as the catalogue says.  Raises ``BadMetric``."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadMetric(f"metrics={given!r} is not valid: it takes a list of names, or a dict of name to tolerance")
    read: dict[str, float | None] = {}
    for name, tolerance in (given if isinstance(given, Mapping) else dict.fromkeys(given)).items():
        if not isinstance(name, str) or not is_metric(name):
            raise BadMetric(f"metrics: {name!r} is no name of a metric such as 'smsp__inst_executed.sum'")
        if name.startswith(PREFIX) and name not in DERIVED:
            raise BadMetric(f"metrics: there is no {name!r}{hint(name, DERIVED)}")
        if tolerance is not None and not (isinstance(tolerance, int | float) and -1 <= tolerance <= 100):
            raise BadMetric(f"metrics: the tolerance {tolerance!r} of {name} is not valid: it takes a fraction or None")
        read[name] = None if tolerance is None else float(tolerance)
    return read


def names_of(asked: Iterable[str]) -> tuple[str, ...]:
    """The metrics behind set names, metric names and derived names, each once, in order.  Raises ``KeyError``."""
    found: dict[str, None] = {}
    for word in asked:
        inputs = DERIVED[word].inputs if word.startswith(PREFIX) else [word]
        found.update(dict.fromkeys([metric.name for metric in SETS[word]] if word in SETS else inputs))
    return tuple(found)


def rules_for(names: Iterable[str], own: Mapping[str, float | None], cache: CacheMode) -> list[Metric]:
    """Rules that compare the named metrics and derived figures; ``own`` tolerances replace the catalogue's.

    Where it does not say which way is better, more is if the tolerance is negative: ``-0.05`` allows a fall by 5 %.
    Of a warm workload, traffic of the L2 and of DRAM informs only: it depends on how many passes ncu runs a kernel in.
    """
    rules = []
    for name in names:
        rule = METRICS.get(name) or DERIVED.get(name) or Metric(name, name, better="neutral", tolerance=None)
        tolerance = own.get(name)
        if tolerance is not None:
            better: Better = "lower" if tolerance >= 0 else "higher"
            better = better if rule.better == "neutral" else rule.better
            rule = dataclasses.replace(rule, better=better, tolerance=abs(tolerance), floor=0.0)
        elif cache == "warm" and name.startswith(TRAFFIC):
            rule = dataclasses.replace(rule, tolerance=None)
        rules.append(rule)
    return rules


def hint(name: str, known: Iterable[str] = METRICS) -> str:
    """``; did you mean ...?`` where something like it is known, else empty."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""
