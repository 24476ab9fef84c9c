"""``Measurement``: the result of ``gpuperf(...)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import LaunchedKernel, WorkloadEvidence
from pytest_gpuperf.model.time_record import SecondaryMetrics, mean_time_ns
from pytest_gpuperf.test_record import CheckedOnly, CountersMissing
from pytest_gpuperf.workload.request import Request

if TYPE_CHECKING:
    from pytest_gpuperf.advise.roofs import Share

_Figure = TypeVar("_Figure", int, float, "Share")


class NotDeclared(ValueError):
    """The test read a figure without declaring its input; the message names the argument."""


class Measurement:
    """The evidence on one workload, for assertions in the test.

    Times are device times of one run of the workload.  Reading one where none was taken ends the test:
    as *static only* without a GPU, as *checked only* where nothing is timed; both are not failures, so
    tests need no guard.
    """

    def __init__(
        self, request: Request, evidence: WorkloadEvidence, gpu: Gpu, untimed: Exception | None,
        counters: Mapping[str, float] | str,
    ) -> None:  # fmt: skip
        """``untimed`` and a text in ``counters`` say why there are none."""
        self.name = request.name
        self.static: Mapping[str, StaticRecord] = evidence.static
        """Static evidence by architecture; empty for a callable."""
        self.judgement = evidence.time_judgement
        """The gate's judgement on the time; None where nothing was judged."""
        self.kernels: tuple[LaunchedKernel, ...] = evidence.kernels
        """What a callable launches, in the order of the first launches; empty in a run that does not gate."""
        self._request, self._evidence, self._gpu = request, evidence, gpu
        self._rounds = evidence.time.rounds if evidence.time is not None else ()
        self._untimed = untimed or CheckedOnly(f"{self.name} was not timed: run pytest --gpuperf")
        self._counters = counters

    def __repr__(self) -> str:
        """Short: pytest shows it where an assertion on a figure fails."""
        return f"<{self.name}: {f'{self.time_ns:.6g} ns' if self._rounds else 'not timed'}>"

    @property
    def time_ns(self) -> float:
        """Nanoseconds of device time per run: geometric mean of the rounds' midmeans."""
        if not self._rounds:
            raise self._untimed
        return mean_time_ns(self._rounds)

    @property
    def interval_ns(self) -> tuple[float, float]:
        """95 % interval of ``time_ns`` over the rounds of this process; other processes may differ by more."""
        mean = self.time_ns
        return self._evidence.interval_ns or (mean, mean)

    @property
    def speedup(self) -> float:
        """Time of the baseline, or of the reference of ``gpuperf.compare``, over its own, where both ran side by side.

        Raises ``NotDeclared`` where they did not.
        """
        figures = self._evidence.time_figures
        ratio = figures.ratio if figures is not None and figures.method == "paired" else None
        return 1 / self._figure(ratio, "speedup", "gpuperf.compare(..., reference=...)")

    @property
    def counters(self) -> Mapping[str, float]:
        """Counters of one run by Nsight Compute, and metrics derived from them, by name (docs/how-to/counters.md).

        Raises ``CountersMissing`` (a ``LookupError``), with the reason and what to do, where nothing was counted.
        """
        if isinstance(self._counters, str):
            raise CountersMissing(f"{self.name} has no counters: {self._counters}")
        return self._counters

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory that one run needs: the arrays of a launch, and the most that it allocates.

        Raises ``NotDeclared`` without ``measure=("memory",)``.
        """
        return self._figure(self._secondary.memory_bytes, "memory_bytes", "gpuperf(..., measure=('memory',))")

    @property
    def host_ns(self) -> float:
        """Nanoseconds of the host from the call of the workload to its return, the GPU idle before.

        Raises ``NotDeclared`` without ``measure=("host",)``.
        """
        host = self._secondary.host
        return self._figure(None if host is None else host.time_ns, "host_ns", "gpuperf(..., measure=('host',))")

    @property
    def error(self) -> float:
        """The result of ``accuracy=``.  Raises ``NotDeclared`` without it."""
        return self._figure(self._secondary.accuracy, "error", "gpuperf(..., accuracy=)")

    @property
    def _secondary(self) -> SecondaryMetrics:
        return self._evidence.secondary or SecondaryMetrics()

    def _figure(self, value: _Figure | None, name: str, asking: str) -> _Figure:
        if value is None and not self._rounds:
            raise self._untimed
        if value is None:
            raise NotDeclared(f"{self.name} has no {name}: call {asking}")
        return value

    @property
    def bandwidth(self) -> float:
        """Declared bytes per second of device time.  Raises ``NotDeclared`` if the test declared no ``bytes=``."""
        return self._figure(self._request.bytes, "bandwidth", "gpuperf(..., bytes=n)") / self.time_ns * 1e9

    @property
    def flops(self) -> float:
        """Declared operations per second of device time.  Raises ``NotDeclared`` without ``flops=``."""
        return self._figure(self._request.flops, "flops", "gpuperf(..., flops=n)") / self.time_ns * 1e9

    @property
    def roof(self) -> float:
        """Share of the GPU's roof that it comes closest to, 0 to 1: of counted or declared bytes and operations.

        Above 1 where the test declares more than is moved, as of a cache.  Roofs are those of ``gpu.roofs``.
        Raises ``NotDeclared`` where there are neither counters, ``bytes=`` nor ``flops=`` of a launch.
        """
        return self._closest().fraction

    @property
    def limited_by(self) -> str:
        """The name of that roof in ``gpu.roofs``: ``"dram"``.  Raises ``NotDeclared`` as ``roof`` does."""
        return self._closest().roof

    def _closest(self) -> Share:
        from pytest_gpuperf.advise.roofs import shares_of  # noqa: PLC0415 modules that few tests need
        from pytest_gpuperf.explain import side_of  # noqa: PLC0415 as above

        counters = {} if isinstance(self._counters, str) else dict(self._counters)
        static, time_ns = self._record() if self.static else None, self.time_ns
        side = side_of(self._gpu.arch, static, self._evidence.time, self._gpu.facts, None, counters, time_ns)
        return self._figure(next(iter(shares_of(side, self._gpu.peak)), None), "roof", "gpuperf(..., bytes=n, flops=n)")

    def _record(self) -> StaticRecord:
        if not self.static:
            raise NotDeclared(f"{self.name} is a callable without a kernel of its own: it has no static evidence")
        return self.static.get(self._gpu.arch if self._gpu.available else "", next(iter(self.static.values())))

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
        assert occupancy is not None  # of a launch
        return occupancy.fraction
