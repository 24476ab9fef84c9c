"""What a process may spend of the run's error rate, by what pytest-xdist says it is."""

from __future__ import annotations

import types
from typing import Any

import pytest
from pytest_gpuperf.judge.error_budget import ALPHA, Spending, spending_of

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context.run_state import RunState


def worker(**workerinput: Any) -> RunState:
    return RunState(types.SimpleNamespace(workerinput=workerinput), Options())  # type: ignore[arg-type]


def test_a_run_without_workers_spends_all_of_it() -> None:
    assert RunState(types.SimpleNamespace(), Options()).spending == Spending()  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_a_worker_spends_its_part_and_one_that_replaces_a_crashed_one_its_own(number: int) -> None:
    assert worker(workerid=f"gw{number}", workercount=2).spending == spending_of(number, 2)
    assert spending_of(0, 2) == spending_of(1, 2) != spending_of(2, 2) != spending_of(5, 2)


@pytest.mark.parametrize("shards", [1, 4])
def test_shards_and_their_workers_spend_no_more_than_one_run(shards: int) -> None:
    """Two workers each, and replacements of crashed ones."""
    options = [Options(shard=(index, shards)) for index in range(1, shards + 1)]
    states = [
        RunState(types.SimpleNamespace(workerinput={"workerid": f"gw{number}", "workercount": 2}), one)  # type: ignore[arg-type]
        for one in options
        for number in range(30)
    ]
    spent = sum(state.spending.alpha for state in states if int(state.spending.workers) == 1) + sum(
        state.spending.alpha / state.spending.workers for state in states if state.spending.workers == 2
    )
    assert spent == pytest.approx(ALPHA, rel=1e-6)
    assert spent <= ALPHA
    alone = RunState(types.SimpleNamespace(), options[0])  # type: ignore[arg-type]
    assert alone.spending.alpha == ALPHA / shards


@pytest.mark.parametrize("name", ["build-box", "gwen", "gw", "gw1-box"])
def test_workers_that_were_given_names_share_alpha_like_others(name: str) -> None:
    """By ``--tx ssh=one//id=build-box``; those of pytest-xdist itself are called gw0, gw1 and so on."""
    assert worker(workerid=name, workercount=2).spending == spending_of(0, 2)
