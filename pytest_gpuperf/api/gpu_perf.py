"""``gpuperf``: measures and judges what a test hands to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_gpuperf.api.workload_arguments import amount, arrays, function, name_of, require_callable
from pytest_gpuperf.arguments import BadArgument, measures, require_setting
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.marker import settings_of
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.counters.metric_request import BadMetric, own_metrics
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.verdict import PairSlot
from pytest_gpuperf.workload import measure as measuring
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request


class GpuPerf:
    """``gpuperf(workload, ...) -> Measurement``: runs a workload, checks it, and under ``--gpuperf`` judges it.

    The order is fixed: reset, run, check, and only then measure and compare with the baseline.

    * ``workload``: a ``Launch``, or any callable that launches on the current stream, whose time is the sum of its
      kernels.
    * ``name``: unique within the test; by default the kernel's or the callable's own.
    * ``check``: called after the first run, and again after the timing.  The test fails if it raises an exception or
      answers ``False``, Python's own or an array of bool that is not true everywhere, alone or in a tuple, list or
      dict; what fails at first is not timed.  Answers that are neither yes nor no, such as numbers, are refused.
    * ``reset``: restores inputs that a run overwrites, before every run; not timed.
    * ``bytes``, ``flops``: the bytes that one run must move, and the operations that it must do; whole numbers above 0.
    * ``cache``: ``"cold"`` flushes the L2 before each sample, ``"warm"`` does not.
    * ``tolerance``: the slowdown that is accepted, as a fraction up to 0.5.
    * ``pair_slot``: ``"sustained"`` is for power-limited kernels.  Where the workload is paired with its baseline, each
      of the two runs for two seconds at a time, and a verdict takes one and a half to five minutes.
    * ``metrics``: counters to collect besides the set: names, or a dict of name to tolerance.
    * ``measure``: what to gate beside the time: ``"memory"``, the device memory that a run needs, in bytes; ``"host"``,
      the CPU time from its call to its return.  Names, or a dict of name to tolerance.
    * ``accuracy``: a function that returns the error of the last run's results, such as
      ``lambda: gpu.ulp_error(y, reference)``: recorded, and a larger one is WORSE.
    * ``inputs``: a function of a seed that makes the inputs: every run, timed or not, gets new ones.  They are
      copied into the launch's arrays, in their order without the outputs, or by a dict of names or positions; a
      callable is called with them.
    * ``outputs``: the arrays that it writes, filled with NaN or -1 before each run whose result is checked.

    With ``inputs`` or ``outputs`` the check may have a parameter ``result``: what a callable returned, else its
    outputs.  With ``inputs`` it may have ``inputs``, a tuple as they were made, and ``seed``.

    Raises ``BadArgument``, and ``DuplicateWorkload`` for a name used twice.
    """

    def __init__(self, worker: Worker, book: TestBook, item: pytest.Item) -> None:
        self._worker = worker
        self._book = book
        self._settings = settings_of(item)

    def __call__(
        self,
        workload: Launch | Callable[..., Any],
        *,
        name: str | None = None,
        check: Callable[..., Any] | None = None,
        reset: Callable[[], Any] | None = None,
        bytes: float | None = None,
        flops: float | None = None,
        cache: CacheMode | None = None,
        tolerance: float | None = None,
        pair_slot: PairSlot | None = None,
        metrics: Sequence[str] | Mapping[str, Any] = (),
        measure: Sequence[str] | Mapping[str, float | None] = (),
        accuracy: Callable[[], Any] | None = None,
        inputs: Callable[[int], Any] | None = None,
        outputs: Any = (),
    ) -> Measurement:
        for argument, given in (("cache", cache), ("tolerance", tolerance), ("pair_slot", pair_slot)):
            require_setting(argument, given)
        options, settings = self._worker.options, self._settings
        accepted = settings.tolerance if tolerance is None else tolerance
        slot = pair_slot or settings.pair_slot or "short"
        request = Request(
            limits=options.limits(None if accepted is None else float(accepted), settings.profile),
            cache=cache or settings.cache or options.cache, metrics=self._metrics(metrics),
            budget_s=options.budget(settings.budget_s, slot), pair_slot=slot,
            workload=require_callable(workload), name=name_of(workload, name), check=function("check", check),
            reset=function("reset", reset), bytes=amount("bytes", bytes), flops=amount("flops", flops),
            inputs=function("inputs", inputs, "seed"), outputs=arrays("outputs", outputs),
            accuracy=function("accuracy", accuracy),
            measure={**measures(settings.measure or ()), **measures(measure)},
        )  # fmt: skip
        try:
            return measuring.measure(self._worker, self._book, request)
        except (Exception, pytest.fail.Exception) as problem:
            self._book.note_failure(problem)
            raise

    def _metrics(self, given: Sequence[str] | Mapping[str, Any]) -> dict[str, float | None]:
        """Metrics of the run, of the test's marker and of this call, the nearest word winning."""
        try:
            own = {**own_metrics(self._settings.metrics or ()), **own_metrics(given)}
        except BadMetric as problem:
            raise BadArgument(f"gpuperf: {problem}") from None
        return {**self._worker.options.metrics, **own}
