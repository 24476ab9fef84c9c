"""One run of a workload and the check of its result: before anything is timed, and again after it was."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.workload.request import Request

UNTIMED = "; nothing was timed"


class WrongResult(AssertionError):
    """``check`` returned ``False``, or an array of bool that is not true everywhere; or it failed after the timing."""


def run_and_check(worker: Worker, request: Request) -> None:
    """Reset, run once and check.  Raises what the check raises, and ``WrongResult`` where it says no."""
    with worker.device.current():
        if request.reset is not None:
            request.reset()
        request.workload()
        worker.device.synchronize()
        if request.check is not None:
            _refuse_no(request.name, request.check())


def check_again(worker: Worker, request: Request, timed_runs: int) -> None:
    """The same after ``timed_runs`` or more, for a kernel may be right once and wrong ever after.

    Raises ``WrongResult`` for an ``AssertionError`` of the check, and anything else that it raises as it is.
    """
    if request.check is None:
        return
    try:
        run_and_check(worker, request)
    except AssertionError as problem:
        said = str(problem).removeprefix(f"{request.name}: ").removesuffix(UNTIMED) or "its check failed"
        remedy = (
            "reset= leaves something as it was not before the first run: restore all that the workload changes"
            if request.reset is not None
            else "if it works in place or adds to what it finds, give reset="
        )
        raise WrongResult(
            f"{request.name} was right on its first run and wrong after {timed_runs} more, so none of its times "
            f"counts: {said}\n{remedy}"
        ) from problem


def _refuse_no(name: str, answer: Any) -> None:
    """Raise ``WrongResult`` for a check that says no, in Python's words or in those of an array library."""
    is_array_of_bool = str(getattr(answer, "dtype", "")) in ("bool", "torch.bool")
    if answer is False or (is_array_of_bool and not answer.all()):  # cupy.allclose gives an array of no dimensions
        said = "an array that is not true everywhere" if getattr(answer, "shape", ()) else "False"
        raise WrongResult(f"{name}: the check of its result returned {said}{UNTIMED}")
