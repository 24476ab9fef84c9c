"""What the documents claim about the example kernels, and how a test says whether it is so.

The claims are in ``claims.json``, one a line.  A test names each claim of its family by id and states
the bound that this suite holds it to; the outcome, with the measured figure, goes to the test's
``user_properties`` as JSON, from which a report of all claims can be made.  Types: ``a`` ratio of times,
``b`` counter of Nsight Compute, ``c`` static figure, ``d`` bandwidth or share of a peak, ``e`` fact,
``f`` rule of thumb.

What is expected of a time (``a`` and ``d``), and of a counter that says how busy a chip is, was worked
out for one GPU model; on another one the figure is put on record and binds nobody.  A counter that
counts what the code does (``sectors per request``) is the same everywhere.  Where a run took no counters,
claims about them are put on record as not measured.  ``claims_report.py`` makes a document of the
outcomes of a run.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_gpuperf.context.early_stop import CountersMissing

PROPERTY = "gpuperf_claim"
"""Name under which an outcome is filed in ``user_properties``."""

EXPECTED_OF = "nvidia-h200"
"""The GPU model that the bounds on times were worked out for."""
ALL_COUNTERS = "--gpuperf-ncu=$(python example_suite/hopper_metrics.py)"
"""Collects every metric that a claim is about."""

Record = Callable[[str, object], None]


class NotLookedAt(LookupError):
    """What a claim is about was not looked at in this run; the message says why."""


class NotCollected(NotLookedAt):
    """Counters were taken, and this metric is not among them."""

    def __init__(self, metric: str) -> None:
        super().__init__(f"{metric} was not collected: needs {ALL_COUNTERS}")


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of ``claims.json``."""

    id: str
    type: str
    family: str
    gpu: str
    """The GPU or compiler that the document's own figure comes from."""
    text: str
    chip: bool = False
    """Of a counter: whether it depends on the chip's rates and sizes, not on the code alone."""
    see: tuple[str, ...] = ()
    """Claims that have the figures, where this one promises what they measure."""

    @property
    def is_about_time(self) -> bool:
        return self.type in ("a", "d")

    @property
    def is_about_one_gpu(self) -> bool:
        """Whether what the suite expects of it was worked out for ``EXPECTED_OF``."""
        return self.is_about_time or self.chip


@functools.cache
def load_claims() -> dict[str, Claim]:
    """Every claim by id."""
    lines = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
    return {line["id"]: Claim(**line | {"see": tuple(line.get("see", ()))}) for line in lines}


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What the suite expects of a figure; both ends belong to it."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(
        cls,
        at_least: float | None,
        at_most: float | None,
        between: tuple[float, float] | None,
        equals: float | None,
        tol: float,
    ) -> Bounds:
        """The one bound that was given.  Raises ``TypeError`` unless there is exactly one."""
        if sum(bound is not None for bound in (at_least, at_most, between, equals)) != 1:
            raise TypeError("a claim takes exactly one of at_least=, at_most=, between=(low, high), equals=")
        if at_least is not None:
            return cls(low=at_least)
        if at_most is not None:
            return cls(high=at_most)
        if between is not None:
            return cls(*between)
        assert equals is not None
        return cls(equals - tol, equals + tol)

    def hold(self, value: float) -> bool:
        """False for NaN as well."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low == self.high:
            return f"exactly {self.low:g}"
        if self.high == math.inf:
            return f"at least {self.low:g}"
        if self.low == -math.inf:
            return f"at most {self.high:g}"
        return f"{self.low:g} to {self.high:g}"


class ClaimChecker:
    """The ``claim`` fixture: ``claim("S1-01", slow.time_ns / fast.time_ns, at_least=2.5)``.

    An unknown id raises ``KeyError``: a claim that is in no document cannot be checked.
    """

    def __init__(self, record: Record, measured_on: Callable[[], str]) -> None:
        self._record = record
        self._measured_on = measured_on
        """Names the model of this GPU; asked for claims about one GPU only."""

    def __call__(
        self,
        claim_id: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        between: tuple[float, float] | None = None,
        equals: float | None = None,
        tol: float = 0.0,
    ) -> None:
        """Assert the claim.  Raises ``AssertionError`` that quotes the claim, the figure and the bound."""
        bounds = Bounds.of(at_least, at_most, between, equals, tol)
        claim = load_claims()[claim_id]
        holds = bounds.hold(value)
        verdict = "holds" if holds else self._verdict_elsewhere(claim) or "fails"
        self._file(claim, verdict, value, expected=str(bounds))
        assert verdict != "fails", (
            f"{claim.id} does not hold: measured {value:g}, expected {bounds}. The claim ({claim.gpu}): {claim.text}"
        )

    def counter(self, claim_id: str, figure: Callable[[], float], **bound: Any) -> None:
        """Assert what ``figure`` makes of counters; ``bound`` as for a call.  Without counters: not measured."""
        self.seen(claim_id, figure, **bound)

    def seen(self, claim_id: str, figure: Callable[[], float], **bound: Any) -> None:
        """Assert what ``figure`` finds; not measured where it raises ``NotLookedAt``."""
        value = self._found(claim_id, figure)
        if value is not None:
            self(claim_id, value, **bound)

    def counter_refuted(
        self, claim_id: str, figure: Callable[[], float], *, holds: Callable[[float], bool], reason: str
    ) -> None:
        """``refuted`` for what ``figure`` makes of counters; ``holds`` tells whether it is as claimed after all."""
        value = self._found(claim_id, figure)
        if value is not None:
            self.refuted(claim_id, value, holds=holds(value), reason=reason)

    def refuted(self, claim_id: str, value: float, *, holds: bool, reason: str) -> None:
        """Record that the document's claim is not true here.  Fails if, to everyone's surprise, it ``holds``."""
        claim = load_claims()[claim_id]
        verdict = "refuted" if not holds else self._verdict_elsewhere(claim) or "holds after all"
        self._file(claim, verdict, value, reason=reason)
        assert verdict != "holds after all", (
            f"{claim.id} was refuted ({reason}), yet it holds: measured {value:g}. "
            f"Assert it instead. The claim ({claim.gpu}): {claim.text}"
        )

    def skipped(self, claim_id: str, reason: str) -> None:
        """Record that the claim was not looked at, and why."""
        self._file(load_claims()[claim_id], "not measured", None, reason=reason)

    def seen_elsewhere(self, claim_id: str) -> None:
        """Record that other claims, those that it names in ``see``, have the figures."""
        self._file(load_claims()[claim_id], "measured elsewhere", None)

    def _found(self, claim_id: str, figure: Callable[[], float]) -> float | None:
        """None, and put on record, where this run did not take what the figure needs."""
        try:
            return figure()
        except (CountersMissing, NotLookedAt) as problem:
            self.skipped(claim_id, str(problem))
            return None

    def _verdict_elsewhere(self, claim: Claim) -> str | None:
        """What an unexpected figure is called on a GPU that nobody worked it out for; None where it binds."""
        if not claim.is_about_one_gpu or self._measured_on() == EXPECTED_OF:
            return None
        return f"differs on {self._measured_on()}"

    def _file(self, claim: Claim, verdict: str, value: float | None, **more: str) -> None:
        if claim.is_about_one_gpu and value is not None:
            more["gpu"] = self._measured_on()
        outcome = {"id": claim.id, "verdict": verdict, "measured": None if value is None else float(value), **more}
        self._record(PROPERTY, json.dumps(outcome, ensure_ascii=False))
