"""What a test asks ``gpuperf`` to measure, checked where it is asked: nothing here runs, times or judges anything."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.config.call_arguments import BadArgument, BesideKind, is_fraction, number_of, one_line
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import CacheMode, Identity
from pytest_gpuperf.model.tolerance import Limits
from pytest_gpuperf.model.verdict import PairSlot

if TYPE_CHECKING:
    from pytest_gpuperf.workload.fresh_inputs import FreshInputs


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
    limits: Limits
    budget_s: float
    """Wall-clock seconds for timing it."""
    pair_slot: PairSlot
    """Of the blocks that decide."""
    metrics: Mapping[str, float | None]
    """Metrics beside the run's set; a tolerance gates one, None leaves it to the catalogue."""
    inputs: Callable[[int], Any] | None = None
    """Makes the inputs of a run from a seed."""
    outputs: tuple[Any, ...] = ()
    """Arrays that the workload writes, and that are poisoned before each checked run."""
    measure: Mapping[BesideKind, float | None] = dataclasses.field(default_factory=dict)
    """What to measure beside the time; a tolerance gates it, None is the usual one."""
    accuracy: Callable[[], Any] | None = None
    """Returns the error of the results of the last run."""
    fresh: FreshInputs | None = None
    """The inputs of the run to come, where ``inputs`` was given and there is a GPU."""

    @property
    def launch(self) -> Launch | None:
        return self.workload if isinstance(self.workload, Launch) else None

    def identity(self) -> Identity:
        """What runs; a callable has no machine code of its own that could be compared."""
        return self.launch.identity() if self.launch else Identity(code="", launch="callable")

    def with_fresh(self, fresh: FreshInputs) -> Request:
        """The request whose ``reset`` makes fresh inputs, before it does what the test's own one does."""
        workload, reset = self.workload, self.reset

        def renew() -> None:
            fresh.renew()
            if reset is not None:
                reset()

        run = workload if self.launch is not None else lambda: workload(*fresh.arguments)
        return dataclasses.replace(self, fresh=fresh, workload=run, reset=renew)

    def __post_init__(self) -> None:
        """Raise ``BadArgument`` for arguments that do not go together."""
        if "compile" in self.measure and (self.launch is None or self.launch.kernel.compiling is None):
            raise BadArgument(
                f"gpuperf: measure='compile' is of a launch whose kernel cuda_kernel compiles with NVRTC: {self.name} "
                f"is {'a callable' if self.launch is None else 'of a kernel that something else compiled'}"
            )
        if self.accuracy is not None and self.inputs is not None:
            raise BadArgument(
                "gpuperf: accuracy= is of the same inputs in every run, and inputs= makes others: give one"
            )
        self._require_check_fits()
        for place, array in enumerate(self.outputs):
            if self.launch is not None and not any(array is one for one in self.launch.arguments):
                raise BadArgument(
                    f"gpuperf: number {place} of outputs= is no argument of the launch of {self.launch.kernel.name}"
                )

    def _require_check_fits(self) -> None:
        """Raise ``BadArgument`` for a check that asks for what there is not, or misses what it has to know."""
        given = {"result"} if self.inputs is not None or self.outputs else set()
        if self.check is None:
            if given:
                raise BadArgument("gpuperf: inputs= and outputs= are there to be checked: give check=")
            return
        asked = set(asked_of(self.check))
        if asked - given - (_OF_INPUTS if self.inputs is not None else set()):
            raise BadArgument(
                f"gpuperf: check takes {', '.join(asked_of(self.check))}: it may take result with inputs= or outputs=, "
                "inputs and seed with inputs=, and nothing without them"
            )
        if self.inputs is not None and self.launch is None and not asked & _OF_INPUTS:
            raise BadArgument(
                "gpuperf: check asks for neither inputs nor seed, so it cannot know which inputs the callable had: "
                "check=lambda result, inputs: ..."
            )


_OF_INPUTS = {"inputs", "seed"}


def asked_of(check: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters that a check has to be given."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(one.name for one in parameters if one.default is one.empty and one.kind in named)


def require_callable(workload: object) -> Callable[[], Any]:
    """The workload.  This and what follows checks what a test gave, and raises ``BadArgument``."""
    if callable(workload):
        return _run_by_a_call("the workload", workload)
    given = type(workload).__name__
    remedy = "pass kernel.launch(...) or a function that launches"
    raise BadArgument(f"gpuperf measures a launch or a callable, not {given}: {remedy}")


def fraction(given: object) -> float | None:
    """A tolerance as Python's float, whichever library's type it has."""
    if given is None:
        return None
    if not is_fraction(given):
        raise _refused("tolerance", given, "a fraction up to 0.5")
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
    for body in (given, type(given).__call__):  # of an object, whose class has the function
        if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
            raise BadArgument(
                f"gpuperf: {what} is called, and nothing in it would run: it has a yield, or is async. Give a plain "
                "function"
            )
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
