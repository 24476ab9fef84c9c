"""``gpuperf``: measures and judges what a test hands to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_gpuperf.api.marker import settings_of
from pytest_gpuperf.arguments import BadArgument, number_of, one_line, refused, require_setting, tolerances
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.workload import measure as measuring
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

SUSTAINED_BUDGET_S = 80.0
"""For one workload in sustained slots, seconds: blocks that speak for a claim may take four times that."""


class GpuPerf:
    """``gpuperf(workload, ...) -> Measurement``: runs a workload, checks it, and under ``--gpuperf`` judges it.

    The order is fixed: reset, run, check, and only then measure and compare with the baseline.

    * ``workload``: a ``Launch``, or any callable that launches on the current stream, whose time is the sum of its
      kernels.
    * ``name``: unique within the test; by default the kernel's or the callable's own.
    * ``check``: called after the first run, and again after the timing.  The test fails if it raises an exception or
      returns ``False``, or an array of bool that is not true everywhere, alone or in a tuple, list or dict.  A
      workload that fails at first is not timed.  Other answers, such as numbers, are refused.
    * ``reset``: restores inputs that a run overwrites, before every run; not timed.
    * ``bytes``, ``flops``: the bytes that one run must move, and the operations that it must do; whole numbers above 0.
    * ``cache``: ``"cold"`` flushes the L2 before each sample, ``"warm"`` does not.
    * ``tolerance``: the slowdown that is accepted, as a fraction up to 0.5.
    * ``metrics``: more counters to collect than the set: names, or a dict of name to tolerance.
    * ``measure``: secondary metrics to gate: ``"memory"``, the device memory that a run needs, in bytes; ``"host"``,
      the CPU time from its call to its return.  Names, or a dict of name to tolerance.
    * ``accuracy``: a function that returns the error of the last run's results, such as
      ``lambda: gpu.ulp_error(y, reference)``: recorded, and a larger one is WORSE.
    * ``inputs``: a function of a seed that makes the inputs: every run, timed or not, gets new ones.  They are
      copied into the launch's arrays, in their order without the outputs; a callable is called with them.
    * ``outputs``: the arrays that it writes, filled with NaN or -1 before each run whose result is checked.

    With ``inputs`` or ``outputs`` the check may have a parameter ``result``: what a callable returned, else its
    outputs.  With ``inputs`` it may have ``inputs``, a tuple as they were made, and ``seed``.

    Raises ``BadArgument``, and ``DuplicateWorkload`` for a name used twice.
    """

    def __init__(self, run: Run, test: TestRecord, item: pytest.Item) -> None:
        self._run = run
        self._test = test
        self._settings = settings_of(item)

    @property
    def gpu(self) -> Gpu:
        """As the fixture ``gpu``, for a project with a fixture of that name of its own."""
        return self._run.gpu

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
        metrics: Sequence[str] | Mapping[str, Any] = (),
        measure: Sequence[str] | Mapping[str, float | None] = (),
        accuracy: Callable[[], Any] | None = None,
        inputs: Callable[[int], Any] | None = None,
        outputs: Any = (),
    ) -> Measurement:
        for argument, given in (("cache", cache), ("tolerance", tolerance)):
            require_setting(argument, given)
        options, settings = self._run.options, self._settings
        accepted = settings.tolerance if tolerance is None else tolerance
        request = Request(
            limits=options.limits(None if accepted is None else float(accepted)),
            cache=cache or settings.cache or options.cache, metrics=tolerances("metrics", settings.metrics, metrics),
            budget_s=settings.budget_s or (SUSTAINED_BUDGET_S if settings.sustained else options.budget_s),
            sustained=settings.sustained,
            workload=_callable(workload), name=_name_of(workload, name), check=_function("check", check),
            reset=_function("reset", reset), bytes=_amount("bytes", bytes), flops=_amount("flops", flops),
            inputs=_function("inputs", inputs), outputs=_arrays("outputs", outputs),
            accuracy=_function("accuracy", accuracy),
            measure=tolerances("measure", settings.measure, measure) | ({} if accuracy is None else {"accuracy": None}),
        )  # fmt: skip
        try:
            return measuring.measure(self._run, self._test, request)
        except (Exception, pytest.fail.Exception) as problem:
            self._test.note_failure(problem)
            raise


# --- arguments as they were given, read: each function raises ``BadArgument`` for what it does not take ---


def _callable(workload: object) -> Callable[[], Any]:
    """The workload."""
    if callable(workload):
        return workload
    given = type(workload).__name__
    remedy = "pass kernel.launch(...) or a function that launches"
    raise BadArgument(f"gpuperf measures a launch or a callable, not {given}: {remedy}")


def _name_of(workload: Any, given: object) -> str:
    """A key of the baselines and part of a line in the report; else a launch's kernel, or a callable's own."""
    if given is None:
        given = workload.kernel.name if isinstance(workload, Launch) else getattr(workload, "__name__", "workload")
    return one_line("gpuperf", "name", given)


def _function(what: str, given: object) -> Callable[..., Any] | None:
    if given is None:
        return None
    if not callable(given):
        raise refused("gpuperf", what, given, f"a function, which gpuperf calls: {what}=lambda: ...")
    return given


def _arrays(what: str, given: object) -> tuple[Any, ...]:
    """One array, or a tuple or list of them."""
    found = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(hasattr(array, "shape") and hasattr(array, "dtype") for array in found):
        raise refused("gpuperf", what, given, "the arrays that the workload writes: outputs=(y,)")
    return found


def _amount(what: str, given: Any) -> int | None:
    """Of bytes or operations as Python's int of 64 bits, whichever library's type it has; ``2e9`` is one, too."""
    if given is None:
        return None
    number = number_of(given)
    if not 0 < number < 2**63 or not number.is_integer():
        raise refused("gpuperf", what, given, "a whole number above 0 and below 2**63")
    return int(given)
