"""Formulas for figures that follow from counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.counters.metric_request import DERIVED, derive

counts = st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 1e15))


@pytest.mark.parametrize(
    ("name", "counters", "value"),
    [
        ("sectors_per_load_request", {c.LOAD_SECTORS: 128, c.LOAD_REQUESTS: 4}, 32),
        ("sectors_per_store_request", {c.STORE_SECTORS: 16, c.STORE_REQUESTS: 4}, 4),
        ("bytes_per_load_sector", {c.USEFUL_LOAD_BYTES: 400, c.LOAD_SECTORS: 100}, 4),
        ("bytes_per_store_sector", {c.USEFUL_STORE_BYTES: 3200, c.STORE_SECTORS: 100}, 32),
        ("shared_wavefronts_per_load", {c.SHARED_LOAD_WAVEFRONTS: 64, c.SHARED_LOADS: 2}, 32),
        ("shared_wavefronts_per_store", {c.SHARED_STORE_WAVEFRONTS: 2, c.SHARED_STORES: 2}, 1),
        ("excess_shared_wavefronts", {c.SHARED_WAVEFRONTS: 66, c.SHARED_WAVEFRONTS_IDEAL: 4}, 62),
        ("excess_shared_wavefronts", {c.SHARED_WAVEFRONTS: 3, c.SHARED_WAVEFRONTS_IDEAL: 4}, 0),
        ("threads_per_instruction", {c.THREAD_INSTRUCTIONS: 320, c.INSTRUCTIONS: 20}, 16),
        ("divergent_branch_share", {c.DIVERGENT_TARGETS: 1, c.UNIFORM_TARGETS: 3}, 25),
        ("dram_bytes", {c.DRAM_READ: 3, c.DRAM_WRITE: 4}, 7),
        ("dram_bytes_per_second", {c.DRAM_READ: 3000, c.DRAM_WRITE: 1000, c.DURATION: 2000}, 2e9),
        ("fp32_operations", {c.OPERATIONS["fadd"]: 1, c.OPERATIONS["fmul"]: 10, c.OPERATIONS["ffma"]: 100}, 211),
        ("fp64_operations", {c.OPERATIONS["dadd"]: 1, c.OPERATIONS["dmul"]: 10, c.OPERATIONS["dfma"]: 100}, 211),
    ],
)
def test_a_formula_gives_what_it_says(name, counters, value):
    assert derive({metric.name: float(count) for metric, count in counters.items()})[f"derived:{name}"] == value


def test_a_missing_input_leaves_a_figure_out():
    assert derive({c.LOAD_SECTORS.name: 8.0}) == {}


def test_nothing_is_divided_by_zero():
    assert derive({c.LOAD_SECTORS.name: 0.0, c.LOAD_REQUESTS.name: 0.0}) == {}


def test_stall_shares_add_up_to_the_whole_with_and_without_what_some_chips_lack():
    stalls = {metric.name: float(number) for number, metric in enumerate(c.STALLS.values(), 1)}
    for lacking in ((), (c.STALLS["gmma"].name, c.STALLS["imc_miss"].name)):
        here = {name: value for name, value in stalls.items() if name not in lacking}
        shares = {name: value for name, value in derive(here).items() if "stall_share" in name}
        assert len(shares) == len(here)
        assert sum(shares.values()) == pytest.approx(100)


def test_derived_figures_are_those_of_what_was_counted():
    counters = {c.DRAM_READ.name: 3.0, c.DRAM_WRITE.name: 4.0}
    assert derive(counters) == {"derived:dram_bytes": 7.0}


@given(counts)
def test_derived_figures_are_numbers_whatever_was_counted(counters):
    for name, value in derive(counters).items():
        assert name in DERIVED
        assert value == value  # not NaN
        assert value >= 0
