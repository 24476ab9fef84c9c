"""``gpuperf``: measures and judges what a test hands to it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_gpuperf.api.marker import settings_of
from pytest_gpuperf.arguments import BadArgument, number_of, one_line, refused, require_setting, tolerances
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.limits import Profile
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.workload import measure as measuring
from pytest_gpuperf.workload.check import as_reference
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

__tracebackhide__ = True  # of pytest: an error is shown at the test's line

SUSTAINED_BUDGET_S = 80.0
"""For one workload in sustained slots, seconds: blocks that speak for a claim may take four times that."""


class GpuPerf:
    """``gpuperf(workload, *args, ...) -> Measurement``: runs a workload, checks it, and under ``--gpuperf`` judges it.

    The order is fixed: reset, run, check, and only then measure and compare with the baseline.

    * ``workload``: a ``Launch``, or any callable that launches on the current stream, whose time is the sum of its
      kernels.  It is called with ``args``, and with keywords that are not among these.
    * ``name``: unique within the test; by default the kernel's or the callable's own.
    * ``check``: called after the first run, and again after the timing.  The test fails if it raises an exception or
      returns ``False``, or an array of bool that is not true everywhere, alone or in a tuple, list or dict.  A
      workload that fails at first is not timed.  Other answers, such as numbers, are refused.
    * ``reset``: restores inputs that a run overwrites, before every run; not timed.
    * ``bytes``, ``flops``: the bytes that one run must move, and the operations that it must do; whole numbers above 0.
    * ``cache``: ``"cold"`` flushes the L2 before each sample, ``"warm"`` does not.
    * ``tolerance``: the slowdown that is accepted: ``"tight"`` (0.5 %), ``"standard"`` (1 %, the default), ``"loose"``
      (5 %), or a fraction up to 0.5.
    * ``min_delta_us``: a slowdown of so many microseconds is accepted too, whatever its ratio.
    * ``metrics``: more counters to collect than the set: names, or a dict of name to tolerance.
    * ``measure``: secondary metrics to gate: ``"memory"``, the device memory that a run needs, in bytes; ``"host"``,
      the CPU time from its call to its return.  With ``"elapsed"`` its time is the device time from its first start to
      its last end.  Names, or a dict of name to tolerance.
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
        self, workload: Launch | Callable[..., Any], *args: Any, name: str | None = None,
        check: Callable[..., Any] | None = None, reset: Callable[[], Any] | None = None,
        bytes: float | None = None, flops: float | None = None, cache: CacheMode | None = None,
        tolerance: float | Profile | None = None, min_delta_us: float | None = None,
        metrics: Sequence[str] | Mapping[str, Any] = (), measure: Sequence[str] | Mapping[str, float | None] = (),
        accuracy: Callable[[], Any] | None = None, inputs: Callable[[int], Any] | None = None, outputs: Any = (),
        **kwargs: Any,
    ) -> Measurement:  # fmt: skip
        asked = tolerances("measure", self._settings.measure, measure)
        return self._measured(self._request(
            _callable(workload, *args, **kwargs), name, cache, asked.get("elapsed") or tolerance, min_delta_us,
            metrics=tolerances("metrics", self._settings.metrics, metrics),
            check=_function("check", check), reset=_function("reset", reset), bytes=_amount("bytes", bytes),
            flops=_amount("flops", flops), inputs=_function("inputs", inputs), outputs=_arrays("outputs", outputs),
            accuracy=_function("accuracy", accuracy),
            measure=asked | ({} if accuracy is None else {"accuracy": None}),
        ))  # fmt: skip

    def compare(
        self, works: Mapping[str, Launch | Callable[..., Any]], *, reference: str, at_least: float | None = None,
        at_most: float | None = None, outputs: Mapping[str, Any] | bool = False,
        reset: Callable[[], Any] | None = None, cache: CacheMode | None = None,
        tolerance: float | Profile | None = None, min_delta_us: float | None = None,
    ) -> dict[str, Measurement]:  # fmt: skip
        """Compare launches and callables with one of them, in this process: no baseline, on any GPU.

        * ``works``: by name.  Each but the reference gets a ``Measurement``, with ``speedup`` over the reference.
        * ``reference``: the name of one of them.
        * ``at_least``: how many times as fast as the reference each has to be; ``at_most``: how many times its time
          each may take.  Slower than that by more than the tolerance is SLOWER; without either nothing is asked.
        * ``outputs``: the arrays that each writes, by name; ``True`` for what callables return.  Shape, type and values
          have to be those of the reference, within the tolerances of ``torch.testing.assert_close``.
        * ``reset``, ``cache``, ``tolerance``, ``min_delta_us``: as of ``gpuperf``.

        Raises ``BadArgument``, and ``WrongResult`` for other results than the reference's.
        """
        if not isinstance(works, Mapping) or reference not in works or len(works) < 2:
            raise BadArgument("gpuperf.compare takes two workloads or more by name, and the name of one as reference=")
        if at_least is not None and at_most is not None:
            raise BadArgument("gpuperf.compare: pass at_least= or at_most=, not both")
        least, most = _ratio("at_least", at_least), _ratio("at_most", at_most)
        most = most if least is None else 1 / least
        written = outputs if isinstance(outputs, Mapping) else {}
        if not isinstance(outputs, bool) and set(written) != set(works):
            raise BadArgument("gpuperf.compare: outputs= has to name the arrays of each workload")
        arrays = {name: _arrays("outputs", written.get(name, ())) for name in works}
        requests = {
            name: self._request(work, name, cache, tolerance, min_delta_us, reset=_function("reset", reset))
            for name, work in works.items()
        }
        against, compared, self._test.compares = requests.pop(reference), {}, True
        for name, request in requests.items():
            compared[name] = self._measured(dataclasses.replace(
                request, against=against, most=most, outputs=arrays[name],
                check=as_reference(self._run, against, arrays[reference]) if outputs else None,
            ))  # fmt: skip
        return compared

    def _request(
        self, workload: object, name: str | None, cache: CacheMode | None, tolerance: float | Profile | None,
        min_delta_us: float | None, **more: Any,
    ) -> Request:  # fmt: skip
        for argument, given in (("cache", cache), ("tolerance", tolerance), ("min_delta_us", min_delta_us)):
            require_setting(argument, given)
        options, settings = self._run.options, self._settings
        deltas = (min_delta_us, settings.min_delta_us, options.min_delta_us)
        return Request(
            limits=options.limits(settings.tolerance if tolerance is None else tolerance),
            min_delta_us=float(next(one for one in deltas if one is not None)),
            cache=cache or settings.cache or options.cache,
            budget_s=settings.budget_s or (SUSTAINED_BUDGET_S if settings.sustained else options.budget_s),
            sustained=settings.sustained, workload=_callable(workload), name=_name_of(workload, name), **more,
        )  # fmt: skip

    def _measured(self, request: Request) -> Measurement:
        try:
            return measuring.measure(self._run, self._test, request)
        except (Exception, pytest.fail.Exception) as problem:
            self._test.note_failure(problem)
            raise


# --- arguments as they were given, read: each function raises ``BadArgument`` for what it does not take ---


def _callable(workload: object, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The workload, with its arguments."""
    if isinstance(workload, Launch) and (args or kwargs):
        named = ", ".join(kwargs) or "arguments"
        raise BadArgument(f"gpuperf takes no {named} with a launch; those of the kernel are in kernel.launch(args=...)")
    if callable(workload):
        whole = functools.partial(workload, *args, **kwargs)
        return functools.update_wrapper(whole, workload) if args or kwargs else workload
    remedy = "pass kernel.launch(...) or a function that launches"
    raise BadArgument(f"gpuperf measures a launch or a callable, not {type(workload).__name__}: {remedy}")


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


def _ratio(what: str, given: float | None) -> float | None:
    if given is None:
        return None
    if not 0.01 <= (number := number_of(given)) <= 100:
        raise refused("gpuperf.compare", what, given, "a number from 0.01 to 100, such as 1.1")
    return number


def _amount(what: str, given: Any) -> int | None:
    """Of bytes or operations as Python's int of 64 bits, whichever library's type it has; ``2e9`` is one, too."""
    if given is None:
        return None
    number = number_of(given)
    if not 0 < number < 2**63 or not number.is_integer():
        raise refused("gpuperf", what, given, "a whole number above 0 and below 2**63")
    return int(given)
