"""One run of a workload and the test's own check of its result: before anything is timed, and again after it was.

Outputs hold poison before it.  Inputs are made anew from a seed before every run, in the arrays that the workload
reads: their addresses stay, so a launch and a captured graph read the new content.  Arrays are CuPy's, NumPy's in
simulations, or PyTorch's tensors.
"""

from __future__ import annotations

import itertools
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.arrays import POISON, stream_of
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.run import Run
from pytest_gpuperf.workload.request import Request, asked_of

__tracebackhide__ = True  # of pytest: an error is shown at the test's line

SEED_BITS = 31
"""Bits of the seed of an input factory: every library's generator accepts it."""


class WrongResult(AssertionError):
    """``check`` returned ``False``, or an array of bool that is not true everywhere; or it failed after the timing."""


def run_and_check(run: Run, request: Request) -> None:
    """Poison the outputs, reset, run once and check.

    Raises the check's exception, ``WrongResult`` if it says no, and ``BadArgument`` if it says neither yes nor no.
    """
    with run.device.current():
        for array in request.outputs:
            poison(array)
        returned = request.run()
        run.device.synchronize()
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
            raise WrongResult(f"{problem}\nThe inputs were inputs({request.fresh.seed})") from problem


def check_again(run: Run, request: Request, timed_runs: int) -> None:
    """The same after ``timed_runs`` or more.  Raises ``WrongResult`` for an ``AssertionError`` of the check."""
    try:
        if request.check is not None:
            run_and_check(run, request)
    except AssertionError as problem:
        why = str(problem).removeprefix(f"{request.name}: ") or "its check failed"
        remedy = "if it works in place or accumulates, pass reset=, which restores all that a run changes"
        if request.fresh is not None:
            remedy = "find the state that the workload keeps between runs"
        raise WrongResult(
            f"{request.name} was right on its first run and wrong after {timed_runs} more, so none of its times "
            f"counts: {why}\n{remedy}"
        ) from problem


TOLERANCES = {
    "float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5),
    "float8_e4m3fn": (2.0**-3, 2.0**-9), "float8_e5m2": (2.0**-2, 2.0**-16),
}  # fmt: skip
"""Of results of two implementations, relative and absolute: those of ``torch.testing.assert_close``, of fp8 a unit in
the last place, else none."""


def as_reference(run: Run, reference: Request, outputs: tuple[Any, ...]) -> Callable[[Any], None]:
    """A check that runs the reference, and compares its ``outputs``, or what it returns, with the workload's."""

    def check(result: Any) -> None:
        returned = reference.run()
        results = [one if isinstance(one, tuple | list) else (one,) for one in (result, outputs or returned)]
        for number, (found, wanted) in enumerate(itertools.zip_longest(*results)):
            if not (hasattr(found, "dtype") and hasattr(wanted, "dtype")) or found is wanted:
                raise BadArgument(f"{reference.name}: outputs= needs arrays of its own from each workload, as many")
            kinds = [str(one.dtype).removeprefix("torch.") for one in (found, wanted)]
            if kinds[0] != kinds[1]:
                raise WrongResult(f"result {number} is {kinds[0]}, and that of {reference.name} is {kinds[1]}")
            rtol, atol = TOLERANCES.get(kinds[0], (0.0, 0.0))
            try:
                run.gpu.assert_allclose(_as_double(found), _as_double(wanted), rtol=rtol, atol=atol)
            except AssertionError as problem:
                raise WrongResult(f"result {number} is not that of {reference.name}: {problem}") from None

    return check


def _as_double(array: Any) -> Any:
    """Of a tensor; other arrays are compared so by themselves."""
    if not hasattr(array, "detach"):
        return array
    return _bytes(array).reshape(array.shape) if "float4" in str(array.dtype) else array.detach().double()


def _require_yes(name: str, answer: Any) -> None:
    """Raise ``WrongResult`` if an answer, or one of several, is no, and ``BadArgument`` if it is neither yes nor no."""
    if isinstance(answer, tuple | list | Mapping):
        for one in answer.values() if isinstance(answer, Mapping) else answer:
            _require_yes(name, one)
        return
    is_array_of_bool = str(getattr(answer, "dtype", "")) in ("bool", "torch.bool")
    if answer is False or (is_array_of_bool and not answer.all()):  # cupy.allclose gives an array of no dimensions
        shown = "an array that is not true everywhere" if getattr(answer, "shape", ()) else "False"
        raise WrongResult(f"{name}: the check of its result returned {shown}")
    if answer is not None and answer is not True and not is_array_of_bool:
        raise BadArgument(
            f"{name}: the check of its result returned {reprlib.repr(answer)}, of type {type(answer).__name__}. To do: "
            "compare in the check, and return True or False, or raise an AssertionError"
        )


# --- inputs and outputs --------------------------------------------------------------------------


class FreshInputs:
    """The arrays that a workload reads, and the factory that fills them; run by run with the same seeds everywhere."""

    def __init__(self, name: str, factory: Callable[[int], Any], launch: Launch | None, outputs: Sequence[Any]) -> None:
        """A launch has all its arrays but ``outputs`` filled; a callable gets arrays like the factory's first.

        Raises ``BadArgument`` for a factory that gives no arrays, others than the launch reads, or always the same.
        """
        self._name, self._factory = name, factory
        self._seeds = (stream_of(number) >> (64 - SEED_BITS) for number in itertools.count())
        self.made = self._make(None)
        """The factory's last result, which no run has changed."""
        self.arguments = first = tuple(map(_copy, self.made))
        """Arguments of a callable."""
        if launch is not None:
            arrays = filter(array_facts, launch.arguments)
            self.arguments = tuple(one for one in arrays if not any(one is output for output in outputs))
        self.made = self._make(self.arguments)
        if all(bool((_bytes(one) == _bytes(other)).all()) for one, other in zip(first, self.made, strict=True)):
            why = "gives equal arrays for two seeds: make them from the seed"
            raise BadArgument(f"{name}: inputs(seed) {why}")

    def renew(self) -> None:
        """Make the next inputs, and enqueue their copy to where the workload reads them.  Raises ``BadArgument``."""
        self.made = self._make(self.arguments)
        for target, made in zip(self.arguments, self.made, strict=True):
            _detached(target)[...] = _detached(made)

    def _make(self, like: Sequence[Any] | None) -> tuple[Any, ...]:
        """Inputs of the next seed.  Raises ``BadArgument`` if they are no arrays, or not ``like`` the workload's."""
        self.seed = next(self._seeds)
        given = self._factory(self.seed)
        made = tuple(given) if isinstance(given, tuple | list) else (given,)
        if problem := next(_misfits(made, made if like is None else like), ""):
            raise BadArgument(f"{self._name}: inputs(seed) gives {problem}")
        return made


def _misfits(made: Sequence[Any], targets: Sequence[Any]) -> Iterator[str]:
    for one in made:
        if not (hasattr(one, "shape") and hasattr(one, "dtype")):
            yield f"{type(one).__name__}: it takes CuPy arrays and PyTorch tensors"
    if len(made) != len(targets):
        yield f"{len(made)} arrays, and the workload reads {len(targets)}: give one for each, in this order"
    for number, (one, target) in enumerate(zip(made, targets, strict=True)):
        if (found := _described(one)) != (wanted := _described(target)):
            yield f"{found} for number {number}, which is {wanted}: give the same library, type and shape"


def poison(array: Any) -> None:
    """Fill an array as ``gpu.empty`` does: floating-point numbers are NaN then, and whole ones -1."""
    data = _detached(array)
    flat = data.reshape(-1)
    if not (flat.is_contiguous() if hasattr(flat, "detach") else flat.flags.c_contiguous):
        flat = _copy(flat)
    _bytes(flat)[...] = POISON
    data[...] = flat.reshape(data.shape)


def _bytes(array: Any) -> Any:
    data = _detached(array).reshape(-1)
    return data.view(sys.modules["torch"].uint8 if hasattr(data, "detach") else "uint8")


def _detached(array: Any) -> Any:
    """The array; of a tensor one on the same memory that takes part in no gradient."""
    return array.detach() if hasattr(array, "detach") else array


def _copy(array: Any) -> Any:
    data = _detached(array)
    return data.clone() if hasattr(data, "clone") else data.copy()


def _described(array: Any) -> str:
    """``cupy float32[1024,32]``"""
    library = type(array).__module__.partition(".")[0]
    return f"{library} {str(array.dtype).removeprefix('torch.')}[{','.join(map(str, array.shape))}]"
