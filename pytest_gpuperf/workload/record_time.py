"""Recording a workload's time: what a process that an update starts does with it.  It judges nothing."""

from __future__ import annotations

from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.model.task import RecordTask
from pytest_gpuperf.workload.timed_rounds import TimedRounds, TimedWorkload, take

RETAKES = 3
"""How often disturbed rounds are taken again before they are handed over as disturbed."""
BRIEF_S = 0.02
"""For a round that nothing is compared with: some 30 samples of a launch of 100 us, 5 of longer ones."""


def one_round(work: TimedWorkload) -> TimedRounds:
    """A short round, so that assertions on times have something to look at; it is compared with nothing."""
    return TimedRounds(take(work, 1, min(BRIEF_S, work.request.budget_s)).rounds)


def record_time(work: TimedWorkload, task: RecordTask, state: RunState) -> TimedRounds:
    """Take this process's share of an update's rounds, again if they were disturbed, and keep the machine code."""
    launch = work.request.launch
    for _ in range(1 + RETAKES):
        taken = take(work, task.rounds, work.request.budget_s, process=task.index)
        if not taken.disturbed:
            break
    if launch is not None:
        state.cubins[launch.binary.cubin_hash] = launch.binary.cubin
    return TimedRounds(taken.rounds, disturbances=taken.disturbed)
