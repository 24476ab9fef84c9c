"""The A/A self-pair of a run: one launch against itself, whose difference is the machine's doing."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.judge.error_budget import SELF_PAIR_E
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.result import SelfPairReading
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.workload import self_pairs
from pytest_gpuperf.workload.timed_rounds import TimedWorkload, pair_with


def pair_with_itself(work: TimedWorkload, state: RunState, rounds: Sequence[Round]) -> None:
    """Pair the launch with itself if this test is one of the run's A/A self-pairs."""
    launch, node_id = work.request.launch, work.key.node_id
    too_long = rounds[-1].midmean > self_pairs.LONGEST_NS
    if launch is None or too_long or node_id not in state.self_pairs:
        return
    state.self_pairs.discard(node_id)
    zone, rate = work.request.zone, 1 / SELF_PAIR_E  # in both directions: neither side is a candidate
    policy = Policy(delta=zone.delta, epsilon=zone.epsilon, alpha=rate, alpha_faster=rate)
    pairing = pair_with(work, launch.binary, policy, rounds[-1].midmean, self_pairs.BUDGET_S, "short")
    paired = pairing.paired
    if paired.blocks:  # else all of them were discarded, and say nothing
        state.self_pair_readings[node_id] = SelfPairReading(
            workload=work.key.workload, ratio=paired.ratio, blocks=paired.blocks, seed=pairing.seed,
            log_e_slower=paired.evidence.log_e_slower, log_e_faster=paired.evidence.log_e_faster,
        )  # fmt: skip
