"""The list of naive and optimised pairs names workloads that exist, and causes that the advice knows."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_gpuperf.advise.causes import BY_KEY

SUITE = Path(__file__).parents[3] / "example_suite"
WITHOUT_PAIRS = {"hardware_facts", "f32x2"}
"""Families that measure the hardware, or show machine code for a GPU that no time is on record of."""
CALLABLES = {"two kernels, 1 in 16", "n_chunks", "two_streams", "serial"}
"""Workloads that launch several kernels and have no static evidence of their own."""


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("pairs")


@pytest.fixture
def recorded(pairs: ModuleType) -> Any:
    return importlib.import_module("recorded").Recorded()


def test_every_family_has_a_pair(pairs: ModuleType) -> None:
    families = {path.stem for path in (SUITE / "kernels").glob("*.cu")}
    assert {pair.family for pair in pairs.PAIRS} == families - WITHOUT_PAIRS


def test_both_workloads_of_a_pair_have_static_baselines(pairs: ModuleType, recorded: Any) -> None:
    workloads = [(pair, name) for pair in pairs.PAIRS for name in (pair.optimised, pair.naive)]
    missing = {name for pair, name in workloads if recorded.static(pair, name) is None}
    assert missing == CALLABLES


def test_pairs_have_one_sibling_each_and_causes_of_the_advice(pairs: ModuleType) -> None:
    counts = Counter((pair.family, pair.test, pair.optimised) for pair in pairs.PAIRS)
    assert max(counts.values()) == 1
    assert all(pair.optimised != pair.naive and pair.why for pair in pairs.PAIRS)
    assert {pair.cause for pair in pairs.PAIRS} - {""} <= BY_KEY.keys()
    assert sum(bool(pair.cause) for pair in pairs.PAIRS) >= 25


def pair_of(pairs: ModuleType, optimised: str) -> Any:
    (found,) = [pair for pair in pairs.PAIRS if pair.optimised == optimised]
    return found


def test_baselines_show_differences_and_gains(pairs: ModuleType, recorded: Any, tmp_path: Path) -> None:
    differences = {
        "transpose_padded": "code", "template": "code", "b32x8": "launch", "Horner, 8 blocks per SM": "launch",
        "padded": "data", "patch_bisect": "data", "uniform_true": "data", "n_chunks": "callable",
    }  # fmt: skip
    assert {name: recorded.difference(pair_of(pairs, name)) for name in differences} == differences
    assert recorded.gain(pair_of(pairs, "transpose_padded")) == pytest.approx(1.69, abs=0.05)
    assert {pair.optimised: pair.wall for pair in pairs.PAIRS if pair.wall} == {
        "n_chunks": "STR-01", "two_streams": "STR-05",
    }  # fmt: skip
    nothing = importlib.import_module("recorded").Recorded(tmp_path)
    assert nothing.gain(pair_of(pairs, "transpose_padded")) is None
    assert nothing.difference(pair_of(pairs, "transpose_padded")) == "callable"
    unequal = pair_of(pairs, "f32_ilp2")
    assert recorded.gain(unequal) == 2 * recorded.time_ratio(unequal) == pytest.approx(2, abs=0.1)
