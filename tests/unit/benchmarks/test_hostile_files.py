"""Mutated and built files through the readers, as ``benchmarks/hostile_files.py`` does with many more of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_gpuperf.baselines.cubin_store import MAX_CUBIN_BYTES, stored_cubins
from pytest_gpuperf.baselines.records import _MOST_VALUES, MAX_FILE_BYTES
from pytest_gpuperf.baselines.store import BaselineStore

ROOT = Path(__file__).parents[3]
MUTATED = 300
SHARE = 16
"""By so much smaller than the limits are the files that are built here."""


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module("hostile_files")
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_cubins_are_read_or_refused(script: ModuleType, seed: int) -> None:
    found = script.read_all(script.mutated_cubins(MUTATED, seed))
    assert found.failures == ()
    assert found.outcomes.total() == MUTATED
    assert min(found.outcomes["read"], found.outcomes["refused"]) > MUTATED / 10


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_baselines_are_read_or_refused(script: ModuleType, seed: int) -> None:
    found = script.read_all(script.mutated_baselines(3 * MUTATED, seed))
    assert found.failures == ()
    assert found.outcomes.total() == 3 * MUTATED
    assert min(found.outcomes["read"], found.outcomes["refused"]) > MUTATED / 20


def test_mutations_of_one_seed_are_the_same(script: ModuleType) -> None:
    for mutated in (script.mutated_cubins, script.mutated_baselines):
        assert [one.content for one in mutated(20, 7)] == [one.content for one in mutated(20, 7)]


def test_files_that_are_built_to_cost_much_take_little(script: ModuleType) -> None:
    cubins, baselines = script.built_cubins(MAX_CUBIN_BYTES // SHARE), script.built_baselines(MAX_FILE_BYTES // SHARE)
    for file in (*cubins, *baselines):
        found = script.read_all(iter([file]))
        assert found.failures == ()
        assert found.peak_mb < script.MOST_MB / 2, file.name


def test_whatever_else_is_raised_is_a_failure(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_file: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(script, "read_as_cubin", broken)
    found = script.read_all(script.mutated_cubins(2, 1))
    assert found.outcomes == {"failed": 2}
    assert found.failures[0].endswith("KeyError: 'x'")


def test_a_process_that_dies_is_a_failure(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "read_all", lambda _files: sys.modules["os"]._exit(3))
    found = script.in_child(script.built_cubins)
    assert found.outcomes == {"failed": 1}


# --- the limits ----------------------------------------------------------------------------------


def test_committed_cubins_are_far_below_the_limit() -> None:
    store = BaselineStore(ROOT / "baselines")
    largest = max(len(store.cubin(sha256)) for sha256 in stored_cubins(ROOT / "baselines").values())
    assert 3 * largest < MAX_CUBIN_BYTES < 20 * largest


def test_committed_baselines_are_far_below_the_limits() -> None:
    contents = [path.read_bytes() for path in (ROOT / "baselines").rglob("*.jsonl")]
    assert 20 * max(content.count(b",") + content.count(b":") for content in contents) < _MOST_VALUES
