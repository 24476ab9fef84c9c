"""What becomes of a document's claim: a rule, not a choice.

A claim states what its document says (a figure, or a range) and from where on there would be no effect at all (its
neutral figure); the measured figure then has one verdict.  A figure is reproduced within 15 %, a range inside of it.
Beyond that it is the direction that holds, with more or less of an effect, unless that too is missing.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence

TOLERANCE = 0.15
"""Of a document's single figure."""
NO_EFFECT = 0.01
"""A figure this close to the neutral one, as a share of it, shows no direction."""


class Verdict(enum.Enum):
    """What a page says of a claim."""

    REPRODUCED = "reproduced"
    MORE = "direction holds, more"
    LESS = "direction holds, less"
    CONTRADICTED = "contradicted"
    ERRATUM = "document's erratum"
    NOT_COMPARABLE = "not comparable here"
    PREDICTION = "our prediction"
    NOT_MEASURED = "not measured"
    """In this run: it took no counters, or the GPU lacks what the claim is about."""


class BadClaim(ValueError):
    """A claim whose statement makes no sense."""


@dataclasses.dataclass(frozen=True)
class Said:
    """What a document says: everything from ``low`` to ``high``, both included."""

    low: float
    high: float
    neutral: float | None = None
    """The figure of no effect: 1 for a ratio, 0 for a difference; None where there is no direction."""
    figure: float | None = None
    """The document's single figure, for a page; None where it says a range."""

    @classmethod
    def of(cls, says: float | Sequence[float | None], neutral: float | None, *, exact: bool = False) -> Said:
        """``says`` is a figure, or [low, high] where None is an open end.  Raises ``BadClaim``."""
        if isinstance(says, Sequence):
            if len(says) != 2:
                raise BadClaim(f"a range has two ends, not {len(says)}: {says}")
            low, high = says
            said = cls(-math.inf if low is None else low, math.inf if high is None else high, neutral)
        else:
            margin = 0.0 if exact else abs(says) * TOLERANCE
            said = cls(says - margin, says + margin, neutral, says)
        if not said.low <= said.high:
            raise BadClaim(f"a range from {said.low:g} to {said.high:g} is empty")
        if neutral is not None and said.low < neutral < said.high:
            raise BadClaim(f"the neutral figure {neutral:g} lies inside what is said, {said.low:g} to {said.high:g}")
        return said

    def verdict(self, measured: float) -> Verdict:
        """Of a measured figure.  Raises ``ValueError`` for NaN."""
        if math.isnan(measured):
            raise ValueError("NaN is no measurement")
        if self.low <= measured <= self.high:
            return Verdict.REPRODUCED
        if self.neutral is None:
            return Verdict.CONTRADICTED
        upwards = self.low >= self.neutral
        effect = measured - self.neutral if upwards else self.neutral - measured
        if effect <= NO_EFFECT * abs(self.neutral):
            return Verdict.CONTRADICTED
        further = measured > self.high if upwards else measured < self.low
        return Verdict.MORE if further else Verdict.LESS
