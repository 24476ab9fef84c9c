"""What a process that stands for another revision does with a workload: it waits there, and takes turns when asked."""

from __future__ import annotations

from pytest_gpuperf.context.opponent_loop import PATIENCE_S
from pytest_gpuperf.context.revision_imports import foreign_imports
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.task import OpponentTask
from pytest_gpuperf.timing.turns import Arrived, serve_turns
from pytest_gpuperf.workload.record_time import one_round
from pytest_gpuperf.workload.timed_rounds import TimedRounds, TimedWorkload


def take_turns(work: TimedWorkload, state: RunState) -> TimedRounds:
    """Tell that the test has come to this callable, and serve until it may go on; then a round for its assertions.

    Raises ``OtherSideLost`` if the process that gates is gone.
    """
    request, worker = work.request, work.worker
    if state.link is not None and request.launch is None:
        state.link.send(Arrived(workload=request.name, identity=work.identity, leaks=_leaks(worker)))
        serve_turns(state.link, worker.device, work.timer, request.workload, request.reset, PATIENCE_S)
    return one_round(work)


def _leaks(worker: Worker) -> tuple[str, ...]:
    """Why this process may run code of another working tree."""
    config, task = worker.config, worker.options.task
    if not isinstance(task, OpponentTask):
        return ()
    return tuple(foreign_imports(config.rootpath.resolve(), config.getini("pythonpath"), task.others, task.tree))
