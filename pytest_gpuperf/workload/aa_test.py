"""A/A tests: a few launches of every gated run are paired with themselves.

What such a pair shows comes from the machine: where a launch differs from itself, the run warns.
"""

from __future__ import annotations

from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.judge.decision import log_e_slower
from pytest_gpuperf.judge.time_verdict import TimeCase
from pytest_gpuperf.model.result import SelfPairReading
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch
from pytest_gpuperf.timing.rounds import LONG_NS
from pytest_gpuperf.workload.gate import compare_with_baseline
from pytest_gpuperf.workload.timed_workload import TimedWorkload

BUDGET_S = 0.2
"""Wall-clock bound of one, seconds; a block more may be under way."""
ALPHA = 1e-3
"""Rate at which a launch differs from itself by luck, in either direction."""


def pair_with_itself(work: TimedWorkload, state: RunState) -> None:
    """Pair the first launch of a test that was chosen for it with itself, if it takes less than a millisecond."""
    launch, node_id = work.request.launch, work.key.node_id
    if launch is None or work.expected_ns() >= LONG_NS:
        return
    state.self_pairs.discard(node_id)
    case = TimeCase(work.key, work.target, work.request.limits, ALPHA)
    found = compare_with_baseline(work, case, launch, BaselineLaunch(launch.binary), BUDGET_S).comparison
    state.self_pair_readings[node_id] = SelfPairReading(
        workload=work.key.workload, ratio=found.ratio, blocks=len(found.r), seed=found.seed,
        log_e_slower=log_e_slower(found.r, case.limits),
        log_e_faster=log_e_slower([-one for one in found.r], case.limits),
    )  # fmt: skip
