"""One run of a workload and the check of its result: before anything is timed, and again after it was."""

from __future__ import annotations

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.workload.guarded_check import check_guarded_run
from pytest_gpuperf.workload.request import Request
from pytest_gpuperf.workload.result_check import WrongResult, in_words, refuse_no


def run_and_check(worker: Worker, request: Request) -> None:
    """Reset, run once and check.  Raises what the check raises, and ``WrongResult`` where it says no."""
    with worker.device.current():
        if request.guard is not None:
            check_guarded_run(worker.device, request, request.guard)
            return
        if request.reset is not None:
            request.reset()
        request.workload()
        worker.device.synchronize()
        if request.check is not None:
            refuse_no(request.name, request.check())


def check_again(worker: Worker, request: Request, timed_runs: int) -> None:
    """The same after ``timed_runs`` or more, for a kernel may be right once and wrong ever after.

    Raises ``WrongResult`` for an ``AssertionError`` of the check, and anything else that it raises as it is.
    """
    if request.check is None:
        return
    try:
        run_and_check(worker, request)
    except AssertionError as problem:
        remedy = (
            "reset= leaves something as it was not before the first run: restore all that the workload changes"
            if request.reset is not None
            else "if it works in place or adds to what it finds, give reset="
        )
        raise WrongResult(
            f"{request.name} was right on its first run and wrong after {timed_runs} more, so none of its times "
            f"counts: {in_words(request.name, problem)}" + (f"\n{remedy}" if request.guard is None else "")
        ) from problem
