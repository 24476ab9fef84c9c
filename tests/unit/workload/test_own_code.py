"""Functions that measure are those that were installed, wherever that is; whatever stands in their place is named."""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import time
from typing import Any
from unittest.mock import Mock

import pytest

import pytest_gpuperf
from pytest_gpuperf.timing import rounds, sample_stats
from pytest_gpuperf.workload.own_code import replaced


def test_nothing_is_replaced_where_all_is_loaded() -> None:
    for module in pkgutil.walk_packages(pytest_gpuperf.__path__, "pytest_gpuperf."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert replaced() == ""


class Fake:
    def method(self) -> None: ...
    def __call__(self) -> float:
        return 1.0


STAND_INS: dict[str, Any] = {
    "function": lambda *given: 1.0,
    "wrapper": functools.wraps(sample_stats.midmean)(lambda *given: 1.0),
    "partial": functools.partial(lambda *given: 1.0),
    "method": Fake().method,
    "callable": Fake(),
    "mock": Mock(return_value=1.0),
    "context": contextlib.contextmanager(lambda: iter([1.0])),
    "cache": functools.cache(lambda *given: 1.0),
}


@pytest.mark.parametrize("stand_in", STAND_INS.values(), ids=STAND_INS.keys())
def test_what_stands_in_the_place_of_a_function_is_named(monkeypatch: pytest.MonkeyPatch, stand_in: Any) -> None:
    monkeypatch.setattr(sample_stats, "midmean", stand_in)
    assert replaced() == "pytest_gpuperf.timing.sample_stats.midmean"


@pytest.mark.parametrize("stand_in", [property(lambda self: ()), staticmethod(lambda: 1), lambda self: self])
def test_what_stands_in_the_place_of_a_method_is_named(monkeypatch: pytest.MonkeyPatch, stand_in: Any) -> None:
    monkeypatch.setattr(rounds.Rounds, "followed_by", stand_in)
    assert replaced() == "pytest_gpuperf.timing.rounds.Rounds.followed_by"


def test_another_code_of_the_same_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_stats.midmean, "__code__", (lambda samples: 1.0).__code__)
    assert replaced() == "pytest_gpuperf.timing.sample_stats.midmean"


def test_a_clock_that_is_a_function_of_somebody_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 1.0)
    assert replaced() == "time.perf_counter"
