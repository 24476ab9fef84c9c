"""The catalogue against NVIDIA's metric library; what is asked for; and how kernels' figures become a workload's."""

from __future__ import annotations

import itertools

import pytest
from perfworks import PerfWorks

from pytest_gpuperf.counters.catalogue import (
    METRICS,
    NAMES,
    REFERENCE,
    SETS,
    canonical,
    chip_of,
    hint,
    names_of,
    on_chip,
    rules_for,
)
from pytest_gpuperf.counters.exchange import KernelResult
from pytest_gpuperf.counters.report import sum_up
from pytest_gpuperf.counters.sections import SECTIONS, details
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.options import METRIC_SETS

OCCUPANCY, DRAM, INSTRUCTIONS, L2, LOADS, WAVEFRONTS = (
    "sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes_read.sum", "smsp__inst_executed.sum",
    "lts__t_sectors.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "memory_l1_wavefronts_shared",
)  # fmt: skip
BY_NCU = ("profiler__", "memory_l1_", "sm__maximum_warps_")
"""Beginnings of metrics that Nsight Compute makes itself; the chip's own list does not have them."""


def of_chips(metrics):
    return [metric for metric in metrics if not metric.name.startswith(BY_NCU)]


OF_CHIPS = of_chips(METRICS.values())


@pytest.mark.parametrize("chip", NAMES)
def test_the_metric_library_knows_every_name_with_its_suffix(chip):
    """And takes as many passes for the sets as the manual says."""
    library = PerfWorks(chip)
    assert not library.has("smsp__misspelt.sum")
    names = {metric.name: on_chip(metric.name, chip) for metric in OF_CHIPS}
    assert [own for own in names.values() if own and not library.has(own)] == []
    assert [name for name, own in names.items() if own is None and library.has(name)] == []
    most = {"default": 2 if chip == "TU102" else 1, "memory": 5, "compute": 5, "latency": 8, "full": 18}
    for name, passes in most.items():
        names = [own for metric in of_chips(SETS[name]) if (own := on_chip(metric.name, chip))]
        assert passes - (3 if name == "full" else 1) <= library.passes(names) <= passes, name


def test_every_architecture_that_can_be_compiled_for_has_a_chip():
    assert {arch.chip for arch in ARCHITECTURES.values()} == set(NAMES)
    assert chip_of("sm_90a") == "GH100"
    assert chip_of("sm_999") == REFERENCE


def test_names_go_to_the_chip_and_back():
    for chip, name in itertools.product(NAMES, METRICS):
        own = on_chip(name, chip)
        assert own is None or canonical(own, chip) == name


def test_the_sets_are_those_that_the_flag_accepts():
    assert set(SETS) == set(METRIC_SETS)
    for metrics in SETS.values():
        names = [metric.name for metric in metrics]
        assert len(set(names)) == len(names)


def test_exact_and_near_exact_metrics_gate_and_the_others_do_not():
    for metric in METRICS.values():
        if metric.klass == "informational":
            assert metric.tolerance is None
        else:
            assert metric.tolerance is not None
            assert 0 <= metric.tolerance <= (0.001 if metric.klass == "exact" else 0.2)
            assert metric.name.endswith(".sum") or metric.name.startswith("memory_l1_")


# --- what is asked for ---------------------------------------------------------------------------


def test_names_of_sets_and_metrics():
    names = names_of(["default", INSTRUCTIONS, "own__metric.sum"])
    assert names == (*(m.name for m in SETS["default"]), "own__metric.sum")


@pytest.mark.parametrize(("name", "own", "cache", "rule"), [
    (DRAM, None, "cold", ("lower", 0.2, 4.0 * 2**20)), (INSTRUCTIONS, None, "cold", ("lower", 0.001, 0.0)),
    ("own__metric.sum", None, "cold", ("neutral", None, 0.0)), (DRAM, 0.1, "cold", ("lower", 0.1, 0.0)),
    ("own__a.sum", 0.05, "cold", ("lower", 0.05, 0.0)), ("own__b.pct", -0.05, "cold", ("higher", 0.05, 0.0)),
    ("own__c.sum", 0.0, "cold", ("lower", 0.0, 0.0)), (LOADS, -0.1, "cold", ("lower", 0.1, 0.0)),
    (DRAM, None, "warm", ("lower", None, 4.0 * 2**20)), (L2, 0.3, "warm", ("lower", 0.3, 0.0)),
    (LOADS, None, "warm", ("lower", 0.0, 0.0)),
])  # fmt: skip
def test_an_own_tolerance_or_the_catalogue_decides(name, own, cache, rule):
    """Its sign says which way is better where nothing else does; traffic of a warm workload informs."""
    (found,) = rules_for([name], {name: own}, cache)
    assert (found.better, found.tolerance, found.floor) == rule


def test_a_hint_is_given_for_what_the_catalogue_has_almost():
    assert hint("smsp__inst_excuted.sum") == "; did you mean 'smsp__inst_executed.sum'?"
    assert hint("nothing_of_the_kind") == ""


# --- from kernels to workloads -------------------------------------------------------------------

WANTED = (INSTRUCTIONS, DRAM, OCCUPANCY, WAVEFRONTS, "own__metric.sum")


def kernel(instructions, occupancy=50.0):
    counted = {INSTRUCTIONS: instructions, OCCUPANCY: occupancy, WAVEFRONTS: 8.0}
    return KernelResult(kernel="k", range="0", metrics=counted)


def test_counts_of_several_kernels_add_up_and_ratios_are_left_out_with_a_note():
    counters, note = sum_up([kernel(10), kernel(32)], "GH100", WANTED)
    assert counters == {INSTRUCTIONS: 42, WAVEFRONTS: 16}
    assert note == "2 kernels: 1 ratios and percentages are left out, which do not add up"
    lacking = KernelResult(kernel="k", range="0", metrics={OCCUPANCY: 50.0})
    assert INSTRUCTIONS not in sum_up([kernel(10), lacking], "GH100", WANTED)[0]
    assert sum_up([kernel(10)], "GH100", WANTED)[1] == ""


def test_a_chips_own_names_become_canonical():
    own = KernelResult(kernel="k", range="0", metrics={"dram__bytes_op_read.sum": 64.0})
    assert sum_up([own], "GB202", WANTED) == ({DRAM: 64.0}, "")


# --- tables of a profiler ------------------------------------------------------------------------

LATENCY, BRANCHES, STALLED, REQUESTS, IDEAL = (
    "smsp__average_warp_latency_per_inst_issued.ratio", "smsp__sass_branch_targets_threads_{}.sum",
    "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "memory_l1_wavefronts_shared_ideal",
)  # fmt: skip


def test_the_full_set_has_all_that_the_tables_need():
    rows = [row for rows in SECTIONS.values() for row in rows]
    assert {name for row in rows for name in (*row.metrics, *filter(None, [row.part_of]))} <= METRICS.keys()
    assert {name for name in METRICS if "stalled" in name} <= {name for row in rows for name in row.metrics}


@pytest.mark.parametrize(("what", "counters", "cells", "stands_out"), [
    ("Global Load Sectors/Req", {LOADS: (8, 64), REQUESTS: (2, 2)}, ("", "4", "32", "+700.0 %"), True),
    ("Global Load Sectors/Req", {LOADS: (8, 0), REQUESTS: (2, 0)}, ("", "4", "-", "-"), False),
    ("No Eligible", {"smsp__issue_active.avg.per_cycle_active": (0.5, 0.4)}, ("%", "50", "60", "+20.0 %"), True),
    ("Branch Efficiency", {BRANCHES.format("uniform"): (9, 9), BRANCHES.format("divergent"): (1, 1)},
     ("%", "90", "90", "-"), False),
    ("Stall Wait", {STALLED.format("wait"): (1, 2), LATENCY: (50, 50)}, ("cycles", "1", "2", "+100.0 %"), False),
    ("L1 Wavefronts Shared Excessive", {WAVEFRONTS: (8, 256), IDEAL: (8, 8)}, ("", "0", "248", "+248"), True),
])  # fmt: skip
def test_a_row_is_what_follows_from_its_metrics(what, counters, cells, stands_out):
    before, after = ({name: values[side] for name, values in counters.items()} for side in (0, 1))
    (line,) = [one for _, lines in details(before, after) for one in lines if one.what == what]
    assert (line.cells, line.stands_out) == (cells, stands_out)


def test_what_moved_most_comes_first():
    wait, drain = STALLED.format("wait"), STALLED.format("drain")
    before = {INSTRUCTIONS: 8.0, DRAM: 4.0, wait: 1.0, drain: 9.0, LATENCY: 10.0}
    after = {**before, DRAM: 4.1, drain: 1.0, LATENCY: 2.0}
    found = {name: [line.what for line in lines] for name, lines in details(before, after)}
    assert list(found) == ["Warp State Statistics", "Memory: Device Memory", "Instruction Statistics"]
    assert found["Warp State Statistics"] == ["Warp Cycles Per Issued Instruction", "Stall Drain", "Stall Wait"]
    assert details({}, {}) == []
