"""What a test asks ``gpuperf`` to measure, checked where it is asked: nothing here runs, times or judges anything."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from pytest_gpuperf.config.call_arguments import BadArgument, BesideKind, is_fraction, number_of, one_line
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import CacheMode, Identity
from pytest_gpuperf.model.tolerance import Tolerance
from pytest_gpuperf.model.verdict import PairSlot
from pytest_gpuperf.workload.result_check import asked_of
from pytest_gpuperf.workload.run_guard import RunGuard


@dataclasses.dataclass(frozen=True)
class Request:
    """What a test asks to be measured."""

    workload: Callable[..., Any]
    name: str
    check: Callable[..., Any] | None
    reset: Callable[[], Any] | None
    bytes: int | None
    """What one run must move, as the test declares it."""
    flops: int | None
    """Floating-point operations of one run, as the test declares them."""
    cache: CacheMode
    zone: Tolerance
    budget_s: float
    """Wall-clock seconds for timing it."""
    pair_slot: PairSlot
    """Of the blocks that decide; self-pairs have short ones."""
    metrics: Mapping[str, float | None]
    """Metrics beside the run's set; a tolerance gates one, None leaves it to the catalogue."""
    inputs: Callable[[int], Any] | None = None
    """Makes the inputs of a run from a seed."""
    outputs: tuple[Any, ...] = ()
    """Arrays that the workload writes, and that are poisoned before each run."""
    precision: float | None = None
    """Relative error that ``check`` has to refuse."""
    measure: Mapping[BesideKind, float | None] = dataclasses.field(default_factory=dict)
    """What to measure beside the time; a tolerance gates it, None is the usual one."""
    accuracy: Callable[[], Any] | None = None
    """Returns the error of the results of the last run."""
    guard: RunGuard | None = None
    """Where inputs or outputs were given and there is a GPU."""

    def guarded_by(self, guard: RunGuard, workload: Callable[[], Any]) -> Request:
        """The request whose runs have the guard's inputs and outputs."""
        return dataclasses.replace(self, guard=guard, workload=workload, reset=guard.reset)

    @property
    def launch(self) -> Launch | None:
        return self.workload if isinstance(self.workload, Launch) else None

    def __post_init__(self) -> None:
        """Raise ``BadArgument`` for arguments that do not go together."""
        if self.accuracy is not None and self.inputs is not None:
            raise BadArgument(
                "gpuperf: accuracy= is of the same inputs in every run, and inputs= makes others: give one"
            )
        if self.inputs is None and not self.outputs:
            if self.precision is not None:
                raise BadArgument("gpuperf: precision= is for workloads with inputs= or outputs=: give one of them")
            if self.check is not None and asked_of(self.check):
                raise BadArgument(
                    f"gpuperf: check takes {', '.join(asked_of(self.check))}, which only inputs= or outputs= give it: "
                    "give one of them, or check=lambda: ..."
                )
            return
        if self.check is None:
            raise BadArgument("gpuperf: inputs= and outputs= are there to be checked: give check=")
        asked = asked_of(self.check)
        if self.inputs is not None and self.launch is None and not {"inputs", "seed"} & set(asked):
            raise BadArgument(
                "gpuperf: check asks for neither inputs nor seed, so it cannot know which inputs the callable had: "
                "check=lambda result, inputs: ..."
            )
        for place, array in enumerate(self.outputs):
            if self.launch is not None and not any(array is one for one in self.launch.arguments):
                raise BadArgument(
                    f"gpuperf: number {place} of outputs= is no argument of the launch of {self.launch.kernel.name}"
                )

    def identity(self) -> Identity:
        """What runs; a callable has no machine code of its own that could be compared."""
        return self.launch.identity() if self.launch else Identity(code="", launch="callable")


_LATER = (
    (inspect.isgeneratorfunction, "it has a yield"), (inspect.iscoroutinefunction, "it is async"),
    (inspect.isasyncgenfunction, "it is async"),
)  # fmt: skip
"""Functions that a call only prepares, and why."""


def require_callable(workload: object) -> Callable[[], Any]:
    """The workload.  This and what follows checks what a test gave, and raises ``BadArgument``."""
    if callable(workload):
        return _run_by_a_call("the workload", workload)
    given = type(workload).__name__
    remedy = "pass kernel.launch(...) or a function that launches"
    raise BadArgument(f"gpuperf measures a launch or a callable, not {given}: {remedy}")


def fraction(given: object, what: str = "tolerance") -> float | None:
    """A fraction as Python's float, whichever library's type it has."""
    if given is None:
        return None
    if not is_fraction(given):
        raise _refused(what, given, "a fraction up to 0.5")
    return float(given)


def name_of(workload: Any, given: object) -> str:
    """A key of the baselines and part of a line in the report; else a launch's kernel, or a callable's own."""
    if given is None:
        given = workload.kernel.name if isinstance(workload, Launch) else getattr(workload, "__name__", "workload")
    return one_line("gpuperf", "name", given)


def function(what: str, given: object, *arguments: str) -> Callable[..., Any] | None:
    """One that is called with these arguments; what a check asks for is seen with the rest of the request."""
    if given is None:
        return None
    if not callable(given):
        raise _refused(what, given, f"a function, which gpuperf calls: {what}=lambda: ...")
    if what != "check":
        try:
            inspect.signature(given).bind(*arguments)
        except ValueError:  # of a builtin
            pass
        except TypeError as problem:
            raise BadArgument(f"gpuperf: {what}= is called as {what}({', '.join(arguments)}): {problem}") from None
    return _run_by_a_call(f"{what}=", given)


def _run_by_a_call(what: str, given: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose body runs when it is called: that of a generator or a coroutine would never run."""
    for kind, word in _LATER:
        if kind(given) or kind(type(given).__call__):  # of an object, whose class has the function
            raise BadArgument(f"gpuperf: {what} is called, and nothing in it would run: {word}. Give a plain function")
    return given


def arrays(what: str, given: object) -> tuple[Any, ...]:
    """One array, or a tuple or list of them."""
    found = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(hasattr(array, "shape") and hasattr(array, "dtype") for array in found):
        raise _refused(what, given, "the arrays that the workload writes: outputs=(y,)")
    return found


def amount(what: str, given: Any) -> int | None:
    """Of bytes or operations as Python's int of 64 bits, whichever library's type it has; ``2e9`` is one, too."""
    if given is None:
        return None
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinity
        number = 0
    if math.isnan(number_of(given)) or not 0 < number < 2**63 or number != given:
        raise _refused(what, given, "a whole number above 0 and below 2**63")
    return number


def _refused(what: str, given: object, accepts: str) -> BadArgument:
    return BadArgument(f"gpuperf: {what}={given!r} is not valid: it takes {accepts}")
