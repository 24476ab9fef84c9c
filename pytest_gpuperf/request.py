"""What a test asks ``gpuperf`` to measure, checked where it is asked: nothing here runs, times or judges anything."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from pytest_gpuperf.compiling import BadArgument
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.evidence import CacheMode, Identity
from pytest_gpuperf.tolerance import Tolerance


@dataclasses.dataclass(frozen=True)
class Request:
    """What a test asks to be measured."""

    workload: Callable[[], Any]
    name: str
    check: Callable[[], Any] | None
    reset: Callable[[], Any] | None
    bytes: int | None
    flops: int | None
    cache: CacheMode
    zone: Tolerance
    budget_s: float
    metrics: Mapping[str, float | None]
    """Metrics beside the run's set; a tolerance gates one, None leaves it to the catalogue."""

    @classmethod
    def of(
        cls, workload: Callable[[], Any], *, name: str | None, check: Callable[[], Any] | None,
        reset: Callable[[], Any] | None, bytes: Any, flops: Any, **settings: Any,
    ) -> Request:  # fmt: skip
        """Check what the test gave and fill in the name: a launch is called after its kernel, a callable after itself.

        Raises ``BadArgument``.
        """
        if not callable(workload):
            raise BadArgument(
                f"gpuperf measures a launch or a callable, not {type(workload).__name__}: "
                "pass kernel.launch(...) or a function that launches"
            )
        own = workload.kernel.name if isinstance(workload, Launch) else getattr(workload, "__name__", "workload")
        return cls(
            workload=workload, name=own if name is None else _name(name), check=_function("check", check),
            reset=_function("reset", reset), bytes=_amount("bytes", bytes), flops=_amount("flops", flops), **settings,
        )  # fmt: skip

    @property
    def launch(self) -> Launch | None:
        return self.workload if isinstance(self.workload, Launch) else None

    def identity(self) -> Identity:
        """What runs; a callable has no machine code of its own that could be compared."""
        return self.launch.identity() if self.launch else Identity(code="", launch="callable")


def _name(given: object) -> str:
    """It is a key of the baselines and part of a line in the report."""
    if not isinstance(given, str) or not given or not given.isprintable():
        raise BadArgument(f"gpuperf: name={given!r} is not valid: it takes text of one line, printable")
    return given


def _function(what: str, given: Any) -> Callable[[], Any] | None:
    if given is not None and not callable(given):
        raise BadArgument(
            f"gpuperf: {what}={given!r} is not valid: it takes a function, which gpuperf calls: {what}=lambda: ..."
        )
    return given  # type: ignore[no-any-return]


def _amount(what: str, given: Any) -> int | None:
    """Of bytes or operations: any number, NumPy's too, as an integer."""
    if given is None:
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(given, str | bool) or not 0 < number < math.inf:
        raise BadArgument(f"gpuperf: {what}={given!r} is not valid: it takes a number above 0")
    return int(given)
