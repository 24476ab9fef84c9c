"""Metrics whose names differ in one place, written under one name with a ``*`` there: most of a record are names."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.checks import BadContentError

Folded = dict[str, float | dict[str, float]]
"""Value of a metric, or of what stands for the ``*`` in the names of several."""
FAMILIES = (
    "smsp__average_warps_issue_stalled_*_per_issue_active.ratio",
    "sm__inst_executed_pipe_*.avg.pct_of_peak_sustained_active",
    "smsp__sass_thread_inst_executed_op_*_pred_on.sum",
    "smsp__sass_inst_executed_op_*.sum",
    "smsp__sass_branch_targets_threads_*.sum",
    "smsp__sass_data_bytes_mem_*.sum",
    "l1tex__t_requests_pipe_lsu_mem_*.sum",
    "l1tex__t_sectors_pipe_lsu_mem_*.sum",
    "launch__*",
    "lts__t_sectors_op_*.sum",
    "dram__bytes_*.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_*.sum",
    "smsp__warps_*.avg.per_cycle_active",
    "*__throughput.avg.pct_of_peak_sustained_elapsed",
)
"""The first that fits counts; every name has one ``*``."""


def folded(counters: Mapping[str, float]) -> Folded:
    """Metrics by their own names to metrics by family."""
    found: Folded = {}
    families: dict[str, dict[str, float]] = {}
    for name, value in counters.items():
        family = next((one for one in FAMILIES if _differs(name, one)), "")
        if family:
            families.setdefault(family, {})[_differs(name, family)] = value
        else:
            found[name] = value
    return {**found, **families}


def _differs(name: str, family: str) -> str:
    """What stands for the ``*``; empty if the name is not of this family."""
    before, _, after = family.partition("*")
    fits = len(name) > len(before) + len(after) and name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if fits else ""


def unfolded(counters: Folded) -> dict[str, float]:
    """The inverse.  Raises ``BadContentError`` for a name that comes twice, or stands for several and has no ``*``."""
    found: dict[str, float] = {}
    for name, value in counters.items():
        several = value if isinstance(value, dict) else {"": value}
        if isinstance(value, dict) and name.count("*") != 1:
            raise BadContentError(f"the metrics of '{quoted(name)}' have no '*' to put their names in, or several")
        for part, one in several.items():
            metric = name.replace("*", part) if isinstance(value, dict) else name
            if metric in found:
                raise BadContentError(f"the metric '{quoted(metric)}' appears twice")
            found[metric] = one
    return found
