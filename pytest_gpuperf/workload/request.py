"""A test's request to ``gpuperf``, checked at the call: nothing here runs, times or judges anything."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.model.time_record import CALLABLE, CacheMode, Identity
from pytest_gpuperf.timing.rounds import Workload

__tracebackhide__ = True  # of pytest: an error is shown at the test's line

if TYPE_CHECKING:
    from pytest_gpuperf.workload.check import FreshInputs


@dataclasses.dataclass(frozen=True)
class Request:
    workload: Callable[..., Any]
    name: str
    cache: CacheMode
    limits: Limits
    budget_s: float
    """Wall-clock seconds for timing it."""
    min_delta_us: float = 0.0
    """A slowdown of so many microseconds is accepted, whatever its ratio."""
    check: Callable[..., Any] | None = None
    reset: Callable[[], Any] | None = None
    bytes: int | None = None
    """Bytes that one run must move, as the test declares them."""
    flops: int | None = None
    """Floating-point operations of one run, as the test declares them."""
    metrics: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    """Further metrics than the run's set; a tolerance gates one, None leaves it to the catalogue."""
    sustained: bool = False
    """Whether the kernel and its baseline each run for seconds at a time."""
    inputs: Callable[[int], Any] | None = None
    """Makes the inputs of a run from a seed."""
    outputs: tuple[Any, ...] = ()
    """Arrays that the workload writes, and that are poisoned before each checked run."""
    measure: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    """Secondary metrics to measure; a tolerance gates it, None is the usual one."""
    accuracy: Callable[[], Any] | None = None
    """Returns the error of the results of the last run."""
    against: Request | None = None
    """What it is compared with in this process, in place of a baseline."""
    most: float | None = None
    """How many times the reference's time it may take; the limits are relative to that.  None: there is no verdict."""
    fresh: FreshInputs | None = None
    """The inputs of the run to come, where ``inputs`` was given and there is a GPU."""

    @property
    def launch(self) -> Launch | None:
        return self.workload if isinstance(self.workload, Launch) else None

    @property
    def sample(self) -> Workload:
        """As a timer takes it."""
        return Workload(self.workload, self.reset, self.cache)

    def restore(self) -> None:
        if self.reset is not None:
            self.reset()

    def run(self) -> Any:
        """Run once, after ``reset``; returns the callable's result."""
        self.restore()
        return self.workload()

    def identity(self) -> Identity:
        """Identity of the work; a callable has no machine code of its own that could be compared."""
        return self.launch.identity() if self.launch else Identity(code="", launch=CALLABLE)

    def with_fresh(self, fresh: FreshInputs) -> Request:
        """The request with a ``reset`` that makes fresh inputs, and then calls the test's own."""
        workload = self.workload

        def renew() -> None:
            fresh.renew()
            self.restore()

        run = workload if self.launch is not None else lambda: workload(*fresh.arguments)
        return dataclasses.replace(self, fresh=fresh, workload=run, reset=renew)

    def __post_init__(self) -> None:
        """Raise ``BadArgument`` for arguments that do not go together."""
        if problem := next(self._problems(), None):
            raise BadArgument(f"gpuperf: {problem}")

    def _problems(self) -> Iterator[str]:
        if self.inputs is not None and self.accuracy is not None:
            yield "accuracy= needs the same inputs in every run, but inputs= makes new ones: pass one of the two"
        of_inputs = {"inputs", "seed"} if self.inputs is not None else set()
        given = {"result", *of_inputs} if of_inputs or self.outputs or self.against else set()
        if (of_inputs or self.outputs) and self.check is None:
            yield "inputs= and outputs= need a check: pass check="
        asked = asked_of(self.check) if self.check is not None else ()
        if set(asked) - given:
            yield (
                f"check takes {', '.join(asked)}: it may take result with inputs= or outputs=, inputs and seed with "
                "inputs=, and nothing without them"
            )
        if of_inputs and self.launch is None and not of_inputs & set(asked):
            yield "check has no parameter inputs or seed, so it cannot know the callable's inputs: add inputs"
        for place, array in enumerate(self.outputs):
            launch = self.launch
            if launch is not None and not any(array is getattr(one, "kept", one) for one in launch.arguments):
                yield f"number {place} of outputs= is no argument of the launch of {launch.kernel.name}"


def asked_of(check: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters that a check has to be given."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(one.name for one in parameters if one.default is one.empty and one.kind in named)
