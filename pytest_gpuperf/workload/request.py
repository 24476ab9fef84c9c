"""What a test asks ``gpuperf`` to measure, checked where it is asked: nothing here runs, times or judges anything."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.config.call_arguments import BadArgument, BesideKind
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
