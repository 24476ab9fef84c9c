"""Claims about counters: asserted where a run has them, put on record where it has not; and no metric is misspelt."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.test_record import CountersMissing

SUITE = Path(__file__).parents[3] / "example_suite"
BEYOND_THE_CATALOGUE = (Path(__file__).parent / "hopper_metrics.txt").read_text(encoding="utf-8").split()
"""Metrics of GH100 that Nsight Compute accepts and no set of the plugin has."""
KNOWN = METRICS.keys() | set(BEYOND_THE_CATALOGUE)
ARGUMENTS: Mapping[str, Callable[[ModuleType], tuple[str, ...]]] = {
    "way": lambda _: ("ld", "st"),
    "space": lambda _: ("global", "local", "shared"),
    "pipe": lambda counters: counters.PIPES,
    "reason": lambda counters: counters.STALLS,
}
"""All that a figure may be asked about."""


class Run:
    """A measured workload with counters that a test made up."""

    def __init__(self, counters: Mapping[str, float]) -> None:
        self.counters = counters


class AnyCounter(dict[str, float]):
    """Has every counter, and remembers which were read."""

    def __missing__(self, metric: str) -> float:
        self[metric] = 2.0
        return 2.0


class NoCounters:
    @property
    def counters(self) -> Mapping[str, float]:
        raise CountersMissing("transpose has no counters: run pytest --gpuperf-ncu")


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("counters")


def claimed(claim_id: str, figure: Callable[[], float]) -> list[dict[str, Any]]:
    """Outcomes of a claim with this figure on an H200."""
    outcomes: list[dict[str, Any]] = []
    checker = importlib.import_module("claims").ClaimChecker
    checker(lambda _, value: outcomes.append(json.loads(value)), measured_on=lambda: "nvidia-h200")(claim_id, figure)
    return outcomes


@pytest.mark.parametrize(
    ("run", "missing"),
    [
        (NoCounters(), "transpose has no counters: run pytest --gpuperf-ncu"),
        (Run({}), "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum was not collected: needs "
                  "--gpuperf-ncu=$(python example_suite/hopper_metrics.py)"),
    ],
)  # fmt: skip
def test_a_missing_counter_is_filed_with_the_flag_that_collects_it(
    counters: ModuleType, run: Any, missing: str
) -> None:
    outcome = {"id": "TR-06", "verdict": "not measured", "measured": None, "missing": missing}
    assert claimed("TR-06", lambda: counters.sectors_per_request(run, "ld")) == [outcome]


def test_a_mistake_in_a_figure_is_no_missing_counter(counters: ModuleType) -> None:
    with pytest.raises(KeyError, match="no such workload"):
        claimed("TR-06", lambda: {}["no such workload"])
    with pytest.raises(ValueError, match=r"stalled_long_scorebord_per_issue_active\.ratio is none of the metrics"):
        claimed("S4-06", lambda: counters.stall(Run(AnyCounter()), "long_scorebord"))


# --- the figures ---------------------------------------------------------------------------------


def figures(counters: ModuleType) -> Iterator[Callable[[Any], float]]:
    """Every figure of one workload, about everything that it may be asked about."""
    for _, function in inspect.getmembers(counters, inspect.isfunction):
        names = list(inspect.signature(function).parameters)
        own = function.__module__ == "counters" and names[:1] == ["of"]
        if own and function.__name__ not in ("reading", "longest_stall"):
            for choice in itertools.product(*(ARGUMENTS[name](counters) for name in names[1:])):
                yield lambda of, function=function, choice=choice: function(of, *choice)


def test_every_metric_is_known_and_read(counters: ModuleType) -> None:
    read = AnyCounter()
    for figure in figures(counters):
        figure(Run(read))
    assert read.keys() == counters.METRICS
    assert counters.METRICS <= KNOWN, sorted(counters.METRICS - KNOWN)


def test_figures_are_what_they_are_called(counters: ModuleType) -> None:
    read = {
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 10.0, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 50.0,
        "smsp__sass_data_bytes_mem_global_op_ld.sum": 1280.0, "smsp__sass_inst_executed_op_shared_ld.sum": 10.0,
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 320.0, "smsp__inst_executed.sum": 100.0,
        "smsp__thread_inst_executed.sum": 1600.0, "dram__bytes_read.sum": 5.0, "dram__bytes_write.sum": 7.0,
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1.0,
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 2.0,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 3.0,
        "sm__inst_executed_pipe_tensor_op_hmma.sum": 9.0, "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": 1.0,
    }  # fmt: skip
    run = Run(read)
    found = [counters.sectors_per_request(run, "ld"), counters.wavefronts_per_shared_access(run, "ld")]
    names = (
        "bytes_used_per_sector",
        "active_lanes",
        "single_precision_operations",
        "dram_bytes",
        "tensor_instructions",
    )
    assert [*found, *(getattr(counters, name)(run) for name in names)] == [5, 32, 25.6, 16, 9, 12, 8]
    metric = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
    waits = {metric(reason): 0.0 for reason in counters.STALLS}
    waits |= {metric("selected"): 9.0, metric("not_selected"): 8.0, metric("wait"): 5.0, metric("barrier"): 3.0}
    run = Run({**waits, "smsp__average_warp_latency_per_inst_issued.ratio": 20.0})
    assert counters.longest_stall(run) == 5, "without warps that could issue"
    assert (counters.longest_stall(run, "wait"), counters.stall_share(run, "wait")) == (3, 0.25)
