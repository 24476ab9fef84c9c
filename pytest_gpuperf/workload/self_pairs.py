"""A/A self-pairs: a few launches of every gated run are paired with themselves.

Whatever such a pair shows comes from the machine.  If one of them is seen to be different from itself, the
run's verdicts mean nothing, and the run says so instead of blaming kernels.  See
docs/explanation/statistics.md, "What the run says of the machine".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.model.result import SelfPairReading
from pytest_gpuperf.model.tolerance import Tolerance

if TYPE_CHECKING:
    from pytest_gpuperf.judge.votes import PairedPolicy
    from pytest_gpuperf.timing.paired_run import Pairing

COUNT = 3
BUDGET_S = 0.2
"""Wall-clock bound of one, seconds; a block more may be under way."""
LONGEST_NS = 1_000_000.0
"""A longer launch could not come out different from itself within that time."""


def choose(config: pytest.Config, items: Sequence[pytest.Item]) -> set[str]:
    """Node ids of the tests whose first launch is paired with itself; the same ones in every worker of a run."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    nodes = sorted(item.nodeid for item in items if "gpuperf" in getattr(item, "fixturenames", ()))
    return set(random.Random(run).sample(nodes, min(COUNT, len(nodes))))


def policy_of(zone: Tolerance) -> PairedPolicy:
    """Both directions count alike: neither side is a candidate."""
    from pytest_gpuperf.judge.error_budget import SELF_PAIR_E
    from pytest_gpuperf.judge.votes import PairedPolicy

    return PairedPolicy(delta=zone.delta, epsilon=zone.epsilon, alpha=1 / SELF_PAIR_E, alpha_faster=1 / SELF_PAIR_E)


def reading(workload: str, pairing: Pairing) -> SelfPairReading:
    """What goes into the run's book; at least one block has to count."""
    paired = pairing.paired
    return SelfPairReading(
        workload=workload, ratio=paired.ratio, blocks=paired.blocks, log_e_slower=paired.evidence.log_e_slower,
        log_e_faster=paired.evidence.log_e_faster, seed=pairing.seed,
    )  # fmt: skip
