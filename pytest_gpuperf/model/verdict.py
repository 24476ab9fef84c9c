"""What the gate may say of a workload, and how it says it.  An exception is never turned into a verdict."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pytest_gpuperf.model.evidence import Key, Record

SecondaryKind = Literal["memory", "accuracy", "host"]
EvidenceKind = Literal["static", "counters", "time", "memory", "accuracy", "host"]
SECONDARY: Mapping[SecondaryKind, str] = MappingProxyType(
    {"memory": "memory_bytes", "accuracy": "accuracy", "host": "host"}
)
"""Kinds of secondary metrics, and the field of a record with their figures."""


class Verdict(enum.Enum):
    """What the gate may say (docs/reference/verdicts.md, "Verdicts").  The value is what the user reads."""

    UNCHANGED = "UNCHANGED"
    """The same machine code, launched alike: it cannot have regressed.  Counters: all that gate are in their bands."""
    SAME = "SAME"
    """Time: proven to be slower by less than must be found.  Static: nothing that gates changed.  Other figures: within
    the tolerance."""
    FASTER = "FASTER"
    """Proven faster: the baseline is stale."""
    SLOWER = "SLOWER"
    """Proven slower than the tolerance, in two processes; or *not confirmed*, where no second one could speak."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """Neither slower nor not slower is proven, or the measurement was disturbed."""
    WORSE = "WORSE"
    """Static evidence, a counter that gates or a secondary metric got worse, such as more spills; or no block of a
    launch fits an SM, which no update records."""
    BETTER = "BETTER"
    """Static evidence, a counter that gates or a secondary metric got better: the baseline is stale."""
    NEW = "NEW"
    """No baseline for this workload and target."""
    NOT_COMPARABLE = "NOT-COMPARABLE"
    """The work cannot be done again as it was recorded; the timer or the cache state changed; or, for static evidence,
    the compiler, or the configuration that an autotuner chose.  The reason says which."""
    NOT_MEASURED = "NOT-MEASURED"
    """There is a baseline, and nothing to hold against it: the test was deleted, was skipped or ended early, there is
    no GPU, or there are no counters."""

    @property
    def is_regression(self) -> bool:
        """Fails the test whatever the options say."""
        return self in (Verdict.SLOWER, Verdict.WORSE)

    @property
    def is_pass(self) -> bool:
        """Needs no word of warning."""
        return self in (Verdict.UNCHANGED, Verdict.SAME)


class Change(Record, frozen=True):
    """One figure that differs between baseline and candidate: ``registers 32 -> 40``."""

    what: str
    """``registers``, ``spill stores``, ``occupancy``, ``instructions: fp64`` ..."""
    before: float | str
    after: float | str
    unit: str = ""
    direction: Literal["worse", "better", "neutral"] = "neutral"
    note: str = ""
    """Extra words, such as the limiter of an occupancy."""

    @property
    def figures(self) -> str:
        """``32 -> 40 bytes``"""
        return f"{' -> '.join(self.shown)} {self.unit}".rstrip()

    @property
    def shown(self) -> tuple[str, str]:
        """Before and after, as they are written."""
        before, after = _figure(self.before), _figure(self.after)
        if self.unit == "%" and not isinstance(self.before, str) and not isinstance(self.after, str):
            short = _figure(round(self.before, 1)), _figure(round(self.after, 1))
            before, after = short if short[0] != short[1] else (before, after)  # one decimal, unless that hides it
        return before, after

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.what} {self.figures}{note}"


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}" if value != int(value) else str(int(value))


class Advice(Record, frozen=True):
    """One cause, with its evidence and what putting it right would gain."""

    cause: str
    """Key of one of ``causes.BY_KEY``, which has the words for it."""
    evidence: tuple[Change, ...]
    """Figures, before and after; the most telling one first."""
    gain: float
    """Fraction of the time of the slower version, 0 to 1: an estimate."""
    arch: str = ""
    """Whose machine code was compared."""
    counted: bool = False
    """The estimate rests on counters; otherwise on the machine code alone."""
    gates: bool = False
    """It explains a figure that gates by itself, and is named whatever it costs."""
    same_code: bool = False
    """Both sides ran the very same machine code: what differs is launch or data."""
    in_python: bool = False
    """The kernel is written in Python, and so is its remedy."""
    outweighed: bool = False
    """By the same estimate the whole became faster all the same, for what else changed."""
    file: str = ""
    """Source file of the instruction at fault, relative to pytest's root where it lies below; empty if unknown."""
    line: int = 0
    """Its line in that file, from 1; 0 if unknown."""
    at_line: Change | None = None
    """What the instruction does there, before and after: ``store: sectors per request 4 -> 32``."""

    @property
    def place(self) -> str:
        """``kernels/transpose.cu:26 store: sectors per request 4 -> 32``; empty if no line is known."""
        named = f"{self.file}:{self.line}" if self.line else ""
        done = self.at_line
        return f"{named} {done.what}: {done.figures}" if named and done is not None else named


class TimeFigures(Record, frozen=True):
    """The numbers behind a verdict on time.  Times are nanoseconds per run, ratios candidate over baseline."""

    before_ns: float | None = None
    """Of the baseline: as recorded, or, when paired, as its machine code runs today."""
    after_ns: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the ratio."""
    tolerance: float = 0.0
    min_delta_us: float = 0.0
    """Microseconds that made it the tolerance; 0 where none did."""
    method: Literal["identity", "paired", "record"] = "paired"
    blocks: int = 0
    """Paired blocks used, first process."""
    confirm_blocks: int = 0
    """Paired blocks used by the confirming second process."""
    log_e: float | None = None
    """Natural log of the e-value for 'slower' when the decision fell."""
    log_e_needed: float | None = None
    seeds: tuple[int, ...] = ()
    """Of the coins that ordered the blocks' slots, one per process."""


class Judgement(Record, frozen=True):
    """One verdict on one workload for one target, with its evidence in figures."""

    key: Key
    target: str
    """``sm_90`` for static evidence, ``nvidia-h200`` for all else."""
    kind: EvidenceKind
    verdict: Verdict
    reason: str = ""
    """One sentence: why this verdict, and what to do if anything is to be done."""
    changes: tuple[Change, ...] = ()
    time: TimeFigures | None = None
    notes: tuple[str, ...] = ()
    """Health warnings and attributions that travel with the verdict; every message has them."""
    reference: str = ""
    """The workload of the same test that it was compared with, in place of a baseline: no update records it."""
    fits: bool = True
    """False where no block of the launch fits an SM: no update accepts that, and no cause is sought."""
    renamed: bool = False
    """NEW, and it seems to be a workload that lost its test: its reason says which."""

    @property
    def may_be_intended(self) -> bool:
        """Whether it is a regression that an update may accept."""
        return self.verdict.is_regression and self.fits and not self.reference

    @property
    def is_undecided(self) -> bool:
        """Whether another try, with more time, may decide it: the two were compared, and nothing was proven."""
        compared = self.changes if self.time is None else self.time.method == "paired"
        return self.verdict is Verdict.INCONCLUSIVE and bool(compared)
