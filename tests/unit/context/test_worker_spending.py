"""What a process may spend of the run's error rate, by what pytest-xdist says it is."""

from __future__ import annotations

import types
from typing import Any

import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.judge.error_budget import Spending, spending_of


def worker(**workerinput: Any) -> RunState:
    return RunState(types.SimpleNamespace(workerinput=workerinput), Options())  # type: ignore[arg-type]


def test_a_run_without_workers_spends_all_of_it() -> None:
    assert RunState(types.SimpleNamespace(), Options()).spending == Spending()  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_a_worker_spends_its_part_and_one_that_replaces_a_crashed_one_its_own(number: int) -> None:
    assert worker(workerid=f"gw{number}", workercount=2).spending == spending_of(number, 2)
    assert spending_of(0, 2) == spending_of(1, 2) != spending_of(2, 2) != spending_of(5, 2)
