"""From kernels to workloads: one figure per metric, under its canonical name.

Counts of several kernels add up; their ratios and percentages mean nothing without weights and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.counters.catalogue import METRICS, PASSES
from pytest_gpuperf.counters.chip_names import canonical
from pytest_gpuperf.counters.ncu_report import KernelResult


class Summed(NamedTuple):
    """The counters of one workload."""

    counters: dict[str, float]
    notes: tuple[str, ...] = ()


def sum_up(kernels: Sequence[KernelResult], chip: str, wanted: Iterable[str]) -> Summed:
    """The ``wanted`` metrics (canonical names) of the kernels of one workload."""
    figures = [{canonical(name, chip): value for name, value in kernel.metrics.items()} for kernel in kernels]
    counters: dict[str, float] = {}
    left_out = []
    for name in wanted:
        values = [one[name] for one in figures if name in one]
        if len(values) < len(kernels) or not values:
            continue
        if name == PASSES.name:
            counters[name] = max(values)
        elif len(values) == 1 or (METRICS[name].additive if name in METRICS else name.endswith(".sum")):
            counters[name] = sum(values)
        else:
            left_out.append(name)
    note = f"{len(kernels)} kernels: {len(left_out)} ratios and percentages are left out, which do not add up"
    return Summed(counters, (note,) if left_out else ())
