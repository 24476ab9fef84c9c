"""The catalogue against NVIDIA's metric library."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from perfworks import PerfWorks

from pytest_gpuperf.counters.catalogue import METRICS, NAMES, REFERENCE, SETS, canonical, chip_of, on_chip
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.options import METRIC_SETS

BY_NCU = ("profiler__", "memory_l1_")
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
    most = {"default": 2 if chip == "TU102" else 1, "memory": 5, "compute": 5, "latency": 8, "full": 17}
    for name, passes in most.items():
        names = [own for metric in of_chips(SETS[name]) if (own := on_chip(metric.name, chip))]
        assert passes - (2 if name == "full" else 1) <= library.passes(names) <= passes, name


def test_every_architecture_that_can_be_compiled_for_has_a_chip():
    assert {arch.chip for arch in ARCHITECTURES.values()} == set(NAMES)
    assert chip_of("sm_90a") == "GH100"
    assert chip_of("sm_999") == REFERENCE


def test_names_go_to_the_chip_and_back():
    for chip, name in itertools.product(NAMES, METRICS):
        own = on_chip(name, chip)
        assert own is None or canonical(own, chip) == name


def test_the_sets_are_those_that_the_flag_accepts_and_hold_the_default():
    assert set(SETS) == set(METRIC_SETS)
    for metrics in SETS.values():
        names = [metric.name for metric in metrics]
        assert len(set(names)) == len(names)
        assert set(SETS["default"]) <= set(metrics)
    assert {metric for metrics in SETS.values() for metric in metrics} == set(SETS["full"])


def test_exact_and_near_exact_metrics_gate_and_the_others_do_not():
    for metric in METRICS.values():
        if metric.klass == "informational":
            assert metric.tolerance is None
        else:
            assert metric.tolerance is not None
            assert 0 <= metric.tolerance <= (0.001 if metric.klass == "exact" else 0.2)
            assert metric.name.endswith(".sum") or metric.name.startswith("memory_l1_")


def test_every_set_and_chip_is_in_the_manual():
    """The reference page is made from the catalogue."""
    pages = (Path(__file__).parents[3] / "docs" / page for page in ("how-to/counters.md", "reference/metrics.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [word for word in (*SETS, *NAMES) if word not in text] == []
