"""The checks of a guarded workload: of its first run, of runs that were timed, and of the check itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.plain_arrays import NotPlain, PlainArrays
from pytest_gpuperf.workload.fresh_inputs import FreshInputs, Seeds, read_by
from pytest_gpuperf.workload.guarded_timer import GuardedTimer
from pytest_gpuperf.workload.request import Request
from pytest_gpuperf.workload.result_check import WrongResult, in_words, require_yes
from pytest_gpuperf.workload.run_guard import Result, RunGuard

PRECISION, SHORT_PRECISION = 2.0**-8, 2.0**-4
"""By which fraction a result may be off before its check has to refuse it, unless the test says another one; of numbers
in two bytes."""

_ENDS_OF_TESTS = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception, CheckedOnly, DeviceNeeded)

LATE = (
    "its result was not complete when the stream that is timed was done: another stream or thread goes on that it does "
    "not wait for. Launch on gpu.stream, or have the current stream wait for the others by events"
)
NOT_PLAIN = (
    "{name} returned {what}, which is no result of its own yet: return CuPy arrays or PyTorch tensors that are "
    "computed, and name what it changes in place in outputs="
)


def guarded(device: Device, request: Request, seed: int | None) -> Request:
    """The request with its guard; the very same one if it asks for none.  Raises ``BadArgument``."""
    if request.inputs is None and not request.outputs:
        return request
    arrays, seeds, launch = PlainArrays(type(device.arrays.empty(1))), Seeds(seed), request.launch
    _require_plain_outputs(request, arrays)
    inputs = None
    if request.inputs is not None:
        targets = None
        if launch is not None:
            first = request.inputs(seeds[0])
            targets = read_by(launch, request.outputs, list(first) if isinstance(first, Mapping) else None)
        inputs = FreshInputs(request.name, request.inputs, arrays, targets)
        inputs.require_seeded(seeds[0], seeds[1])
    workload = request.workload if launch is not None else _callable(request, inputs)
    guard = RunGuard(request.name, arrays, seeds, inputs, request.outputs, request.reset)
    return request.guarded_by(guard, workload)


def _callable(request: Request, inputs: FreshInputs | None) -> Callable[[], Any]:
    """The callable with its inputs; it cannot end its test otherwise than by failing."""

    def run() -> Any:
        try:
            return request.workload(*(inputs.arguments if inputs is not None else ()))
        except _ENDS_OF_TESTS as problem:
            raise WrongResult(f"{request.name} ended its test by {type(problem).__name__}: {problem}") from problem

    return run


def guarded_timer(timer: Timer, request: Request, *, looked_at: bool) -> Timer:
    """The timer that a request's workload is measured by."""
    guard = request.guard
    if guard is None:
        return timer
    return GuardedTimer(timer, guard, _check_sample(request, guard) if looked_at else None)


def check_guarded_run(device: Device, request: Request, guard: RunGuard) -> None:
    """Run once and check; the first time, let the check prove that it refuses what is wrong.

    The result is what is there when the workload's own stream has got there.
    """
    guard.reset()
    number = guard.runs - 1
    returned = request.workload()
    try:
        result = guard.result(returned)
        device.synchronize()
        complete = guard.is_complete(returned, result)
    except NotPlain as problem:
        raise WrongResult(NOT_PLAIN.format(name=request.name, what=problem)) from None
    if not complete:
        raise WrongResult(f"{request.name}: {LATE}")
    _check(request, guard, number, result)
    if not guard.tried:
        _try_check(request, guard, number, result)
        guard.tried = True


def _check_sample(request: Request, guard: RunGuard) -> Any:
    def look(number: int, result: Result) -> None:
        """Check the result of a sample that was timed."""
        try:
            _check(request, guard, number, result)
        except AssertionError as problem:
            raise WrongResult(
                f"{request.name} was right on its first run and wrong in a run that was timed, so none of its times "
                f"counts: {in_words(request.name, problem)}"
            ) from problem

    return look


def _check(request: Request, guard: RunGuard, number: int, result: Result) -> None:
    assert request.check is not None
    given = guard.show(number, result)
    try:
        require_yes(request.name, request.check, given)
    except AssertionError as problem:
        if guard.said_of_inputs:
            raise WrongResult(f"{problem}\ninputs({given['seed']}); {guard.said_of_inputs}") from problem
        raise


def _try_check(request: Request, guard: RunGuard, number: int, result: Result) -> None:
    """Raise ``WrongResult`` if the check takes poison for a result, or one that is off by the wanted precision."""
    arrays, wanted = guard.arrays, request.precision

    def poisoned(array: Any) -> Any:
        copy = arrays.copy(array)
        arrays.poison(copy)
        return copy

    def off(array: Any) -> Any:
        return arrays.shifted(array, wanted or (SHORT_PRECISION if arrays.has_short_numbers(array) else PRECISION))

    if _takes(request, guard, number, _changed(arrays, result, poisoned)):
        raise WrongResult(
            f"{request.name}: its check takes an output for right in which nothing was written (NaN, -1). Compare "
            "every element of the result"
        )
    shifted = _changed(arrays, result, off)
    if arrays.same(shifted, result):  # all zero
        return
    if _takes(request, guard, number, shifted):
        by = f"{wanted or PRECISION:.2g}"
        raise WrongResult(
            f"{request.name}: its check takes a result for right that is off by {by} of itself everywhere, so it would "
            f"take one of less precise arithmetic. Tighten it, or give precision= the least error that it has to refuse"
        )


def _changed(arrays: PlainArrays, result: Result, change: Any) -> Result:
    return Result(arrays.map(result.value, change), arrays.map(result.outputs, change))


def _takes(request: Request, guard: RunGuard, number: int, result: Result) -> bool:
    assert request.check is not None
    given = guard.show(number, result)
    try:
        require_yes(request.name, request.check, given)
    except Exception:  # noqa: BLE001 whatever a check raises, it has refused
        return False
    return True


def _require_plain_outputs(request: Request, arrays: PlainArrays) -> None:
    for place, array in enumerate(request.outputs):
        if not arrays.is_plain(array):
            raise BadArgument(
                f"{request.name}: outputs= takes CuPy arrays and PyTorch tensors on the GPU; number {place} is "
                f"{type(array).__name__}"
            )
