"""What a workload is judged by, and what its evidence can decide."""

from __future__ import annotations

import dataclasses
import enum
import math

TIE = 1e-12
"""Log ratios this close to a bound are equal to it: a tie votes for nothing, and rounding breaks none."""
CONFIRMATION_ALPHA = 1e-2
"""Rate of false SLOWER of the second process by itself, and of false FASTER."""


class PolicyError(ValueError):
    """Tolerances or error rates under which nothing can be decided."""


class Decision(enum.Enum):
    """What blocks or rounds prove; a verdict is made of it where all else is known too."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    NOT_SLOWER = "not slower"
    INCONCLUSIVE = "inconclusive"
    CONTINUE = "another block or look is wanted"


@dataclasses.dataclass(frozen=True)
class Policy:
    """Tolerances (fractions) and error rates of one workload; for a suite see ``error_budget``."""

    delta: float = 0.005
    """Slower by no more than this is accepted."""
    epsilon: float = 0.01
    """Slower by this must be detected."""
    alpha: float = 1e-3
    """Rate of false SLOWER of this workload: its share of the suite's."""
    alpha_faster: float = 1e-2
    """Rate of false FASTER of this workload: its share of the suite's."""
    beta: float = 0.005
    """Rate of NOT-SLOWER, by whatever test, for a candidate slower by ``epsilon``."""
    blocks_max: int = 128
    """Without a decision after so many blocks, it is inconclusive."""
    omega: float | None = None
    """Spread between recordings on this GPU, from a machine profile; None: assumed."""

    def __post_init__(self) -> None:
        rates = (self.alpha, self.alpha_faster, self.beta)
        if not (0 <= self.delta < self.epsilon and all(0 < rate < 1 for rate in rates) and self.blocks_max > 0):
            raise PolicyError(
                f"{self}: needs 0 <= delta < epsilon, error rates between 0 and 1, and at least one block"
            )

    @property
    def slower_above(self) -> float:
        """Log ratio above which a pair votes *slower*; the negative of it is the one for *faster*."""
        return math.log1p(self.delta) + TIE

    @property
    def passed_below(self) -> float:
        """Log ratio below which a pair votes *not slower*; the negative of it is the one for *not faster*."""
        return math.log1p(self.epsilon) - TIE

    def confirming(self) -> Policy:
        """The policy of the second process: the first has paid for the suite, this one for itself.

        It knows no share of the suite's, and ends where this policy says so: whoever judges its blocks needs the same.
        """
        return dataclasses.replace(self, alpha=CONFIRMATION_ALPHA, alpha_faster=CONFIRMATION_ALPHA)
