"""The metrics that this plugin knows, out of ``metrics.json``: sets that a run asks for, and tests' own tolerances.

Names are those of GH100; ``NAMES`` has those of other GPUs.  A metric's class says what may be concluded
from a change of it.  *Exact* metrics are the same in every run of the same code on the same inputs: counts of
what the code does.  *Near-exact* ones also depend on what was in the caches, on which block ran where and on where
in the memory of which GPU the data lie.  The others inform: they depend on clocks and on scheduling.  The bands are
wider than what nine H200s differed by on equal code (docs/how-to/counters.md).
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pytest_gpuperf.judge.counters import Better, Metric
from pytest_gpuperf.model.architectures import ARCHITECTURES, plain
from pytest_gpuperf.model.time_record import CacheMode

_OWN = msgspec.json.decode(
    Path(__file__).with_name("metrics.json").read_bytes(), type=dict[str, tuple[Metric, ...]]
)  # fmt: skip
"""What each set adds to ``default``; ``full`` adds its own to all others."""
SETS: Mapping[str, tuple[Metric, ...]] = {
    "default": _OWN["default"],
    **{name: (*_OWN["default"], *_OWN[name]) for name in ("memory", "compute", "latency")},
    "full": tuple(itertools.chain.from_iterable(_OWN.values())),
}
"""Sets of metrics that a run may ask for by one word.

``default`` is what fits into one pass (two on TU10x): no kernel runs twice for it, and ncu has no memory to save
and restore.  The others take 5, 4, 7 and about 17 passes, and one more for what is counted by patched code.
"""

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in SETS["full"]}


# --- what a run and its tests ask for ---------------------------------------------------------------

TRAFFIC = ("dram__", "lts__")
"""Beginnings of metrics that depend on what the caches held."""


def names_of(asked: Iterable[str]) -> tuple[str, ...]:
    """The metrics behind names of sets and of metrics, each once, in order."""
    names = ([metric.name for metric in SETS[word]] if word in SETS else [word] for word in asked)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))


def rules_for(names: Iterable[str], own: Mapping[str, float | None], cache: CacheMode) -> list[Metric]:
    """Rules that compare the named metrics; ``own`` tolerances replace the catalogue's.

    Where it does not say which way is better, more is if the tolerance is negative: ``-0.05`` allows a fall by 5 %.
    Of a warm workload, traffic of the L2 and of DRAM informs only: it depends on how many passes ncu runs a kernel in.
    """
    rules = []
    for name in names:
        rule = METRICS.get(name) or Metric(name, name, better="neutral", tolerance=None)
        tolerance = own.get(name)
        if tolerance is not None:
            better: Better = "lower" if tolerance >= 0 else "higher"
            better = better if rule.better == "neutral" else rule.better
            rule = dataclasses.replace(rule, better=better, tolerance=abs(tolerance), floor=0.0)
        elif cache == "warm" and name.startswith(TRAFFIC):
            rule = dataclasses.replace(rule, tolerance=None)
        rules.append(rule)
    return rules


def hint(name: str) -> str:
    """``; did you mean ...?`` where the catalogue has something like it, else empty."""
    close = difflib.get_close_matches(name, list(METRICS), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""


# --- names on other chips ------------------------------------------------------------------------


REFERENCE = "GH100"

_NO_GMMA = {"smsp__average_warps_issue_stalled_gmma_per_issue_active": ""}
_NO_IMC_MISS = {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active": ""}
_OWN_FP16_PIPE = {"sm__inst_executed_pipe_fma_type_fp16": "sm__inst_executed_pipe_fp16"}
_NO_DRAM = {"dram__bytes_read": "", "dram__bytes_write": "", "dram__throughput": ""}
_DRAM_OPERATIONS = {"dram__bytes_read": "dram__bytes_op_read", "dram__bytes_write": "dram__bytes_op_write"}

NAMES: Mapping[str, Mapping[str, str]] = {
    "TU102": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA100": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA102": _NO_GMMA,
    "GA10B": {**_NO_GMMA, **_NO_DRAM},
    "AD102": _NO_GMMA,
    "GH100": {},
    "GB100": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB110": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB10B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB20B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB202": {**_NO_GMMA, **_NO_IMC_MISS, **_DRAM_OPERATIONS},
}
"""By chip: GH100's name without its suffix, and the chip's own; empty: the chip has none."""


def chip_of(arch: str) -> str:
    """The chip that lends its names to an architecture; GH100 for one that the table does not have."""
    known = ARCHITECTURES.get(plain(arch))
    return known.chip if known else REFERENCE


def on_chip(name: str, chip: str) -> str | None:
    """The chip's own name of a metric; None if it has none."""
    base, dot, suffix = name.partition(".")
    own = NAMES[chip].get(base, base)
    return f"{own}{dot}{suffix}" if own else None


def canonical(name: str, chip: str) -> str:
    """GH100's name of a metric that the chip calls ``name``."""
    base, dot, suffix = name.partition(".")
    back = {own: reference for reference, own in NAMES[chip].items() if own}
    return f"{back.get(base, base)}{dot}{suffix}"
