"""Metrics that are asked for, the rules that compare them, and how kernels' figures become a workload's."""

from __future__ import annotations

import pytest

from pytest_gpuperf.counters.catalogue import (
    ACHIEVED_OCCUPANCY,
    DRAM_READ,
    INSTRUCTIONS,
    L2_SECTORS,
    LOAD_SECTORS,
    SETS,
    SHARED_WAVEFRONTS,
    hint,
    names_of,
    rules_for,
)
from pytest_gpuperf.counters.exchange import KernelResult
from pytest_gpuperf.counters.report import sum_up


def test_names_of_sets_and_metrics():
    names = names_of(["default", INSTRUCTIONS.name, "own__metric.sum"])
    assert names == (*(m.name for m in SETS["default"]), "own__metric.sum")


DRAM, L2, LOADS = DRAM_READ.name, L2_SECTORS.name, LOAD_SECTORS.name


@pytest.mark.parametrize(("name", "own", "cache", "rule"), [
    (DRAM, None, "cold", ("lower", 0.2, 4.0 * 2**20)), (INSTRUCTIONS.name, None, "cold", ("lower", 0.001, 0.0)),
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

WANTED = (INSTRUCTIONS.name, DRAM, ACHIEVED_OCCUPANCY.name, SHARED_WAVEFRONTS.name, "own__metric.sum")


def kernel(instructions, occupancy=50.0):
    counted = {INSTRUCTIONS.name: instructions, ACHIEVED_OCCUPANCY.name: occupancy, SHARED_WAVEFRONTS.name: 8.0}
    return KernelResult(kernel="k", range=0, metrics=counted)


def test_counts_of_several_kernels_add_up_and_ratios_are_left_out_with_a_note():
    counters, note = sum_up([kernel(10), kernel(32)], "GH100", WANTED)
    assert counters == {INSTRUCTIONS.name: 42, SHARED_WAVEFRONTS.name: 16}
    assert note == "2 kernels: 1 ratios and percentages are left out, which do not add up"
    lacking = KernelResult(kernel="k", range=0, metrics={ACHIEVED_OCCUPANCY.name: 50.0})
    assert INSTRUCTIONS.name not in sum_up([kernel(10), lacking], "GH100", WANTED)[0]
    assert sum_up([kernel(10)], "GH100", WANTED)[1] == ""


def test_a_chips_own_names_become_canonical():
    own = KernelResult(kernel="k", range=0, metrics={"dram__bytes_op_read.sum": 64.0})
    assert sum_up([own], "GB202", WANTED) == ({DRAM: 64.0}, "")
