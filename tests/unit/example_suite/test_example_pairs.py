"""The list of naive and optimised pairs names workloads that exist, and causes that the advice knows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pages.facts import PAIRS, Recorded

from pytest_gpuperf.advise.causes import BY_KEY

SUITE = Path(__file__).parents[3] / "example_suite"
WITHOUT_PAIRS = {"hardware_facts", "f32x2"}
"""Families that measure the hardware, or show machine code for a GPU that no time is on record of."""
CALLABLES = {"two kernels, 1 in 16", "n_chunks", "serial"}
"""Workloads that launch several kernels and have no static evidence of their own."""


def test_every_family_has_a_pair() -> None:
    families = {path.stem for path in (SUITE / "kernels").glob("*.cu")}
    assert {pair.family for pair in PAIRS} == families - WITHOUT_PAIRS


def test_both_workloads_of_a_pair_have_static_baselines() -> None:
    recorded = Recorded()
    workloads = [(pair, name) for pair in PAIRS for name in pair.names]
    missing = {name for pair, name in workloads if recorded.static(pair, name) is None}
    assert missing == CALLABLES


def test_pairs_have_one_sibling_each_and_causes_of_the_advice() -> None:
    counts = Counter((pair.family, pair.test, pair.optimised) for pair in PAIRS)
    assert max(counts.values()) == 1
    assert all(pair.optimised != pair.naive and pair.why for pair in PAIRS)
    assert {pair.cause for pair in PAIRS} - {""} <= BY_KEY.keys()
    assert sum(bool(pair.cause) for pair in PAIRS) >= 25
