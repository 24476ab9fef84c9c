"""How long blocks of a CPU time go on: to a decision, or to the end of a budget that is larger for what seems worse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import pytest

from pytest_gpuperf.judge.beside_verdict import policy_of
from pytest_gpuperf.judge.policy import Decision
from pytest_gpuperf.model.beside_figures import HostTime
from pytest_gpuperf.timing.host_blocks import HostBlock
from pytest_gpuperf.workload.measure_beside import LEANING, taken_until_decided

RECORD = HostTime(ratios=(1.0,) * 5, time_ns=1.0, cpu="a CPU", made_by="CPython 3.12")
POLICY = policy_of("host", 0.1, 6e-4, 6e-3)


def blocks(ratios: Sequence[float]) -> Iterator[HostBlock]:
    return (HostBlock(math.log(one), 1.0) for one in itertools.cycle(ratios))


@pytest.mark.parametrize(
    ("ratios", "decision", "most"),
    [
        ([1.22], Decision.SLOWER, 15),
        ([1.22, 1.22, 1.22, 1.22, 1.22, 1.22, 1.05], Decision.SLOWER, 8 * LEANING),
        ([1.22, 1.05], Decision.INCONCLUSIVE, 8 + 2),
        ([1.0], Decision.SAME, 15),
        ([0.95, 0.85], Decision.NOT_SLOWER, 8 * LEANING),
    ],
)
def test_blocks_go_on_while_they_lean_to_worse(ratios: list[float], decision: Decision, most: int) -> None:
    """The clock tells one second a block, and the budget is 8 s."""
    taken, found = taken_until_decided(blocks(ratios), RECORD, POLICY, 8.0, itertools.count().__next__)
    assert found.decision is decision
    assert len(taken) <= most


def test_what_leans_and_is_never_proven_ends_with_its_budgets() -> None:
    ratios = [*[1.22] * 6, *[1.05] * 200]
    taken, found = taken_until_decided(blocks(ratios), RECORD, POLICY, 2.0, itertools.count().__next__)
    assert found.decision is Decision.INCONCLUSIVE
    assert len(taken) <= 2 * LEANING + 2
