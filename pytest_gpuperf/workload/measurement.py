"""``Measurement``: what ``gpuperf(...)`` returns."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TypeVar

from pytest_gpuperf.context.early_stop import CheckedOnly, CountersMissing
from pytest_gpuperf.judge.log_times import geometric_mean
from pytest_gpuperf.judge.plausibility import Implausible
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Judgement

NOTHING_BEYOND = Implausible()
_Figure = TypeVar("_Figure", int, float)


class NotDeclared(ValueError):
    """The test asked for a figure that nothing it declared gives; the message says what would."""


class ImplausibleFigure(ValueError):
    """A rate is beyond what the GPU can do: the declared ``bytes=`` or ``flops=``, or the kernel, is wrong."""


class Measurement:
    """The evidence on one workload, for assertions in the test.

    Times are device times of one run of the workload.  Reading one where none was taken ends the test:
    as *static only* without a GPU, as *checked only* where nothing is timed; both are not failures, so
    tests need no guard.
    """

    def __init__(
        self,
        name: str,
        *,
        static: Mapping[str, StaticRecord],
        native: str | None,
        times_ns: tuple[float, ...] = (),
        interval_ns: tuple[float, float] | None = None,
        bytes: int | None = None,
        flops: int | None = None,
        judgement: Judgement | None = None,
        untimed: Exception | None = None,
        counters: Mapping[str, float] | Exception | None = None,
        beyond: Implausible = NOTHING_BEYOND,
    ) -> None:
        self.name = name
        self.static = static
        """Static evidence by architecture; empty for a callable."""
        self.judgement = judgement
        """What the gate says of the time; None where nothing was judged."""
        self._native = native
        self._times_ns = times_ns
        self._interval_ns = interval_ns
        self._bytes = bytes
        self._flops = flops
        self._untimed = untimed
        self._counters = counters
        self._beyond = beyond
        self._beside = Beside()

    def __repr__(self) -> str:
        """Short: pytest shows it where an assertion on a figure fails."""
        return f"<{self.name}: {f'{self.time_ns:.6g} ns' if self._times_ns else 'not timed'}>"

    @property
    def time_ns(self) -> float:
        """Nanoseconds of device time per run: geometric mean of the rounds' midmeans."""
        if not self._times_ns:
            raise self._untimed or CheckedOnly(f"{self.name} was not timed")
        return geometric_mean(self._times_ns)

    @property
    def interval_ns(self) -> tuple[float, float]:
        """95 % interval of ``time_ns`` over the rounds of this process; other processes may differ by more."""
        mean = self.time_ns
        return self._interval_ns or (mean, mean)

    @property
    def counters(self) -> Mapping[str, float]:
        """What Nsight Compute counted in one run, and what follows from it, by name (docs/how-to/counters.md).

        Raises ``CountersMissing`` (a ``LookupError``), with the reason and what to do, where nothing was counted.
        """
        if isinstance(self._counters, Mapping):
            return self._counters
        raise self._counters or CountersMissing(f"{self.name} has no counters: run pytest --gpuperf-ncu")

    def with_beside(self, beside: Beside) -> Measurement:
        """The same, with what it costs beside its time."""
        found = copy.copy(self)
        found._beside = beside
        return found

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory that one run needs: the arrays of a launch, and the most that it allocates.

        Raises ``NotDeclared`` without ``measure=("memory",)``.
        """
        return self._asked_for(self._beside.memory_bytes, "memory_bytes", "measure=('memory',)")

    @property
    def host_ns(self) -> float:
        """Nanoseconds of the host from the call of the workload to its return, the GPU idle before.

        Raises ``NotDeclared`` without ``measure=("host",)``.
        """
        host = self._beside.host
        return self._asked_for(None if host is None else host.time_ns, "host_ns", "measure=('host',)")

    @property
    def error(self) -> float:
        """What ``accuracy=`` returned.  Raises ``NotDeclared`` without it."""
        return self._asked_for(self._beside.accuracy, "error", "accuracy=")

    def _asked_for(self, value: _Figure | None, name: str, asking: str) -> _Figure:
        if value is not None:
            return value
        if self._untimed is not None:
            raise self._untimed
        raise NotDeclared(f"{self.name} has no {name}: ask for it, gpuperf(..., {asking})")

    @property
    def bandwidth(self) -> float:
        """Declared bytes per second of device time.  Raises ``NotDeclared`` if the test declared no ``bytes=``.

        Raises ``ImplausibleFigure`` for more than the GPU can move.
        """
        if self._bytes is None:
            raise NotDeclared(f"{self.name} has no bandwidth: declare the bytes it must move, gpuperf(..., bytes=n)")
        time_ns = self.time_ns
        if self._beyond.bytes:
            raise ImplausibleFigure(f"{self.name}: {self._beyond.bytes}")
        return self._bytes / time_ns * 1e9

    @property
    def flops(self) -> float:
        """Declared operations per second of device time.  Raises ``NotDeclared`` without ``flops=``.

        Raises ``ImplausibleFigure`` for more than the GPU's tensor cores can do.
        """
        if self._flops is None:
            raise NotDeclared(f"{self.name} has no FLOP rate: declare its operations, gpuperf(..., flops=n)")
        time_ns = self.time_ns
        if self._beyond.flops:
            raise ImplausibleFigure(f"{self.name}: {self._beyond.flops}")
        return self._flops / time_ns * 1e9

    def _record(self) -> StaticRecord:
        if not self.static:
            raise NotDeclared(f"{self.name} is a callable without a kernel of its own: it has no static evidence")
        return self.static.get(self._native or "", next(iter(self.static.values())))

    @property
    def registers(self) -> int:
        """Registers per thread on this GPU's architecture (without a GPU: on the first target)."""
        return self._record().profile.registers

    @property
    def spill_bytes(self) -> int | None:
        """Bytes stored and loaded per thread by register spills; None where the machine code alone does not tell."""
        return self._record().profile.spill_bytes

    @property
    def occupancy(self) -> float:
        """Theoretical occupancy, 0 to 1, of the launch on this GPU's architecture."""
        occupancy = self._record().occupancy
        if occupancy is None:
            raise NotDeclared(f"{self.name} was not launched: it has no occupancy")
        return occupancy.fraction
