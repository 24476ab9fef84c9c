"""What the documents claim about the example kernels, and how a test says what became of it.

The claims are in ``claim_data/FAMILY.json``, one a line: what the document says, where, of which GPU, and what this
suite found on the GPU that it was worked out on.  A test names each claim of its family by id and hands over the
measured figure; it is asserted to be what was found (``here``), and the verdict follows from what the document says by
the rule of ``verdicts.py``.  The outcome goes to the test's ``user_properties`` as JSON; ``claims_report.py`` makes a
page of those.

What is expected of a time, and of a counter that says how busy a chip is, binds on one GPU model; on another one the
figure is put on record and binds nobody.  What the code does (sectors per request) is the same everywhere.  Where a
run took no counters, claims about them are put on record as not measured.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from verdicts import Said, Verdict

from pytest_gpuperf.test_record import CountersMissing

PROPERTY = "gpuperf_claim"
"""Name under which an outcome is filed in ``user_properties``."""
EXPECTED_OF = "nvidia-h200"
"""The GPU model that ``here`` was found on."""
ALL_COUNTERS = "--gpuperf-ncu=$(python example_suite/hopper_metrics.py)"
"""Collects every metric that a claim is about."""
DOCUMENTS = {
    "GTC25": 'GTC 2025, "CUDA Techniques to Maximize Compute and Instruction Throughput"',
    "NOTES": "notes on that talk",
    "GTC23": 'GTC 2023, "What the profiler is telling you: optimizing your CUDA application"',
    "BLOG": 'R. Bourgeois, "Five basic performance advice for porting kernels to the GPU"',
    "COURSE": 'the "Optimization" chapter of a CUDA course',
}
KINDS = ("time", "rate", "counter", "static", "fact", "rule")
"""Ratio of times; bandwidth or share of a peak; of Nsight Compute; of the machine code; fact; rule of thumb."""

Record = Callable[[str, object], None]
Figure = float | Callable[[], float]
"""A measured figure, or what finds it and may raise ``NotLookedAt``."""


class NotLookedAt(LookupError):
    """What a claim is about was not looked at in this run; the message says why."""


class NotCollected(NotLookedAt):
    """Counters were taken, and this metric is not among them."""

    def __init__(self, metric: str) -> None:
        super().__init__(f"{metric} was not collected: needs {ALL_COUNTERS}")


@dataclasses.dataclass(frozen=True)
class Found:
    """What a figure is on the GPU the suite was worked out on: everything between two bounds, both included."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """False for NaN as well."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"exactly {self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a figure is not the document's: a sentence with a figure of its own, for which ``{}`` stands."""

    text: str
    here: Found


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of ``claim_data``."""

    id: str
    kind: str
    family: str
    text: str
    document: str
    """Key of ``DOCUMENTS``; empty for a prediction of this suite."""
    place: str
    """Slide, section or line of the document."""
    shown: str
    """``text``, ``table`` or ``picture``; empty for a prediction."""
    gpu: str
    """The GPU or compiler that the document's own figure comes from."""
    unit: str
    """Of the figure: ``x`` for a ratio, ``%``, ``sectors``, ``registers``; empty for a bare count."""
    says: Said | None
    """None only where nothing is compared."""
    here: Found | None
    """None where nothing is measured."""
    origin: str = "document"
    """``document``, ``erratum`` (the document is mistaken, ``why`` says how) or ``prediction`` (of this suite)."""
    why: str = ""
    """Why it is not comparable here, or what the erratum is."""
    chip: bool = False
    """Of a counter or fact: whether it depends on the chip's rates and sizes, not on the code alone."""
    because: tuple[Reason, ...] = ()

    @property
    def is_about_time(self) -> bool:
        return self.kind in ("time", "rate")

    @property
    def is_about_one_gpu(self) -> bool:
        """Whether ``here`` is of ``EXPECTED_OF`` alone."""
        return self.is_about_time or self.chip

    def verdict(self, measured: float | None) -> Verdict:
        """By rule; of None where the run did not measure it."""
        if self.origin == "prediction":
            return Verdict.PREDICTION
        if self.origin == "erratum":
            return Verdict.ERRATUM
        if self.says is None:
            return Verdict.NOT_COMPARABLE
        return Verdict.NOT_MEASURED if measured is None else self.says.verdict(measured)


@functools.cache
def load_claims() -> dict[str, Claim]:
    """Every claim by id, family after family.  Raises ``TypeError`` or ``ValueError`` for a line that is none."""
    files = sorted(Path(__file__).with_name("claim_data").glob("*.json"))
    lines = [line for file in files for line in json.loads(file.read_text(encoding="utf-8"))]
    return {line["id"]: _claim(line) for line in lines}


def _claim(line: Mapping[str, Any]) -> Claim:
    given = dict(line)
    says, neutral, exact = given.pop("says", None), given.pop("neutral", None), given.pop("exact", False)
    here, because = given.pop("here", None), given.pop("because", [])
    return Claim(
        **given,
        says=None if says is None else Said.of(says, neutral, exact=exact),
        here=None if here is None else Found(*here),
        because=tuple(Reason(one["text"], Found(*one["here"])) for one in because),
    )


class ClaimChecker:
    """The ``claim`` fixture: ``claim("S1-01", slow.time_ns / fast.time_ns)``.

    An unknown id raises ``KeyError``: a claim that is in no document cannot be checked.
    """

    def __init__(self, record: Record, measured_on: Callable[[], str], *, survey: bool = False) -> None:
        self._record = record
        self._measured_on = measured_on
        """Names the model of this GPU; asked for claims about one GPU only."""
        self._survey = survey
        """Put figures on record and assert none: for the first run of new claims, or on another GPU."""

    def __call__(self, claim_id: str, figure: Figure, *, because: Sequence[Figure] = ()) -> None:
        """Assert that the figure, and those of the reasons in their order, are what was found before.

        A figure that is a function may raise ``NotLookedAt``, or ask for counters that this run lacks: that is put on
        record as not measured.  Raises ``AssertionError`` that quotes the claim, the figure and the bounds, and
        ``TypeError`` unless there is a figure for every reason.
        """
        claim = load_claims()[claim_id]
        if claim.here is None:
            raise TypeError(f"{claim.id} has no `here` in claim_data, so nothing can be measured of it")
        if len(because) != len(claim.because):
            raise TypeError(f"{claim.id} has {len(claim.because)} reasons in claim_data, not {len(because)}")
        measured, missing = _found(figure)
        reasons = [_found(one)[0] for one in because]
        self._file(claim, measured, reasons, missing)
        if measured is not None:
            self._assert(claim, measured, claim.here, claim.text)
        for reason, value in zip(claim.because, reasons, strict=True):
            if value is not None:
                self._assert(claim, value, reason.here, reason.text)

    def not_comparable(self, claim_id: str) -> None:
        """Put on record that nothing here can be held against the claim; ``why`` in ``claim_data`` says it."""
        claim = load_claims()[claim_id]
        if claim.says is not None or not claim.why:
            raise TypeError(f"{claim.id} is comparable by claim_data, or does not say why not")
        self._file(claim, None, [], "")

    def _assert(self, claim: Claim, value: float, here: Found, words: str) -> None:
        if self._survey or (claim.is_about_one_gpu and self._measured_on() != EXPECTED_OF):
            return
        assert here.holds(value), (
            f"{claim.id} has changed: measured {value:g}, found before {here}. If that is right, correct `here` in "
            f"claim_data. The claim ({claim.gpu}): {words}"
        )

    def _file(self, claim: Claim, measured: float | None, reasons: Sequence[float | None], missing: str) -> None:
        more: dict[str, Any] = {"missing": missing} if missing else {}
        if claim.is_about_one_gpu and measured is not None:
            more["gpu"] = self._measured_on()
        if reasons:
            more["because"] = reasons
        outcome = {"id": claim.id, "verdict": claim.verdict(measured).value, "measured": measured, **more}
        self._record(PROPERTY, json.dumps(outcome, ensure_ascii=False))


def _found(figure: Figure) -> tuple[float | None, str]:
    """The figure, or None and why this run has none."""
    try:
        value = float(figure() if callable(figure) else figure)
    except (CountersMissing, NotLookedAt) as problem:
        return None, str(problem)
    if not math.isfinite(value):
        raise ValueError(f"{value} is no measured figure")
    return value, ""
