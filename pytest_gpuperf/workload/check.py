"""One run of a workload and the test's own check of its result: before anything is timed, and again after it was."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from typing import Any

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.run import Run
from pytest_gpuperf.workload.fresh_inputs import poison
from pytest_gpuperf.workload.request import Request, asked_of

UNTIMED = "; nothing was timed"


class WrongResult(AssertionError):
    """``check`` returned ``False``, or an array of bool that is not true everywhere; or it failed after the timing."""


def run_and_check(worker: Run, request: Request) -> None:
    """Poison the outputs, reset, run once and check.

    Raises what the check raises, ``WrongResult`` where it says no, and ``BadArgument`` where it says neither.
    """
    with worker.device.current():
        for array in request.outputs:
            poison(array)
        returned = request.run()
        worker.device.synchronize()
        if request.check is None:
            return
        outputs = request.outputs[0] if len(request.outputs) == 1 else request.outputs
        given = {"result": outputs if returned is None else returned}
        if request.fresh is not None:
            given |= {"inputs": request.fresh.made, "seed": request.fresh.seed}
        try:
            _require_yes(request.name, request.check(**{name: given[name] for name in asked_of(request.check)}))
        except AssertionError as problem:
            if request.fresh is None:
                raise
            raise WrongResult(f"{problem}\nits inputs were those of inputs({request.fresh.seed})") from problem


def check_again(worker: Run, request: Request, timed_runs: int) -> None:
    """The same after ``timed_runs`` or more.  Raises ``WrongResult`` for an ``AssertionError`` of the check."""
    if request.check is None:
        return
    try:
        run_and_check(worker, request)
    except AssertionError as problem:
        said = str(problem).removeprefix(f"{request.name}: ").replace(UNTIMED, "") or "its check failed"
        remedy = "if it works in place or adds to what it finds, give reset="
        if request.fresh is not None:
            remedy = "find out what the workload keeps from one run for the next"
        elif request.reset is not None:
            remedy = "reset= leaves something as it was not before the first run: restore all that the workload changes"
        raise WrongResult(
            f"{request.name} was right on its first run and wrong after {timed_runs} more, so none of its times "
            f"counts: {said}\n{remedy}"
        ) from problem


def _require_yes(name: str, answer: Any) -> None:
    """Raise ``WrongResult`` where an answer, or one of several, is no, and ``BadArgument`` where it is no answer."""
    if isinstance(answer, tuple | list | Mapping):
        for one in answer.values() if isinstance(answer, Mapping) else answer:
            _require_yes(name, one)
        return
    if callable(answer) or isinstance(answer, Iterator | Awaitable | AsyncIterator):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns of it, too
        raise BadArgument(
            f"{name}: the check of its result returned a {type(answer).__name__}, which did not run, so it compared "
            f"nothing: run it in the check{UNTIMED}"
        )
    is_array_of_bool = str(getattr(answer, "dtype", "")) in ("bool", "torch.bool")
    if answer is False or (is_array_of_bool and not answer.all()):  # cupy.allclose gives an array of no dimensions
        said = "an array that is not true everywhere" if getattr(answer, "shape", ()) else "False"
        raise WrongResult(f"{name}: the check of its result returned {said}{UNTIMED}")
    if answer is not None and answer is not True and not is_array_of_bool:
        raise BadArgument(
            f"{name}: the check of its result returned {reprlib.repr(answer)}, of type {type(answer).__name__}, which "
            f"says neither yes nor no: compare in the check, which returns True or False, or raises{UNTIMED}"
        )
