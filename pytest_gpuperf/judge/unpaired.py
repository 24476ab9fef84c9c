"""The verdict where the baseline cannot be run again: rounds of today against rounds of the record.

It resolves about 5 %: whatever differs between two recordings besides the code (``omega``) does not average
out, so the tolerance is at least 2 % and what must be detected at least 5 %.  Rounds are looked at when
there are 2, 4, 8 and 16; the looks share ``alpha`` (union bound), so looking again is no second chance.
See docs/explanation/statistics.md, "Unpaired rounds".
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence

from pytest_gpuperf.judge.two_sample import Spread, compare_rounds
from pytest_gpuperf.model.evidence import Round

LOOKS: tuple[int, ...] = (2, 4, 8, 16)
"""Candidate rounds at which the evidence is looked at."""
WEIGHTS: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
"""Each look's share of alpha."""
LEAST_DELTA = 0.02
LEAST_EPSILON = 0.05
"""Fractions of the time that a policy's tolerances are raised to."""
LEAST_OMEGA = 0.003
"""Least spread between two recordings on one GPU, a standard deviation of log times."""
OTHER_GPU_OMEGA = 0.02
"""The same between two GPUs of one model; it differs from kernel to kernel."""


class Decision(enum.Enum):
    SLOWER = "slower"
    FASTER = "faster"
    NOT_SLOWER = "not slower"
    CONTINUE = "another look is wanted"
    INCONCLUSIVE = "the last look ended inside the zone"


@dataclasses.dataclass(frozen=True)
class UnpairedPolicy:
    """Tolerances (fractions) and error rates of one workload."""

    delta: float = LEAST_DELTA
    """Slower by no more than this is accepted; never taken below 2 %."""
    epsilon: float = LEAST_EPSILON
    """Slower by this must be detected; never taken below 5 %."""
    alpha: float = 1e-3
    """Rate of false SLOWER of this workload over all looks (``suite`` shares it out)."""
    alpha_faster: float = 1e-2
    """Rate of false FASTER over all looks."""
    beta: float = 0.005
    """Rate at each look of NOT-SLOWER for a candidate slower by ``epsilon``."""
    omega: float = LEAST_OMEGA
    """Never taken below .3 %."""
    same_gpu: bool = True
    """Whether both sides ran on the same physical GPU; if not, nothing is proven slower or faster."""


@dataclasses.dataclass(frozen=True)
class Unpaired:
    """What an unpaired comparison says after a look."""

    decision: Decision
    spread: Spread
    ratio: float
    """Candidate over baseline: exp of the difference of the mean log times."""
    interval: tuple[float, float] | None
    """95 % t interval of the ratio at this look alone, not corrected for the looks before it."""
    rounds_used: int
    rounds_wanted: int
    """Candidate rounds in all that the next look needs; 0 if there is no next look."""


def judge_unpaired(baseline: Sequence[Round], candidate: Sequence[Round], policy: UnpairedPolicy) -> Unpaired:
    """Look at the first 2, 4, 8 or 16 candidate rounds, as many of these as there are.

    Raises ``InvalidTimesError`` if a side has no round or a midmean is no time.
    """
    look = max((index for index, needed in enumerate(LOOKS) if needed <= len(candidate)), default=-1)
    used = LOOKS[look] if look >= 0 else len(candidate)
    spread = compare_rounds(baseline, candidate[:used], max(policy.omega, LEAST_OMEGA))
    wanted = LOOKS[look + 1] if look + 1 < len(LOOKS) else 0
    decision = Decision.CONTINUE if look < 0 else _decide(spread, policy, WEIGHTS[look], last=not wanted)
    return Unpaired(
        decision=decision, spread=spread, ratio=math.exp(spread.difference), interval=spread.interval(0.95),
        rounds_used=used, rounds_wanted=wanted if decision is Decision.CONTINUE else 0,
    )  # fmt: skip


def _decide(spread: Spread, policy: UnpairedPolicy, weight: float, *, last: bool) -> Decision:
    """The first that applies; what looks faster is looked at again, so that it can be called FASTER."""
    tolerated = math.log1p(max(policy.delta, LEAST_DELTA))
    detected = math.log1p(max(policy.epsilon, LEAST_EPSILON))
    if policy.same_gpu and spread.exceeds(tolerated, policy.alpha * weight):
        return Decision.SLOWER
    if policy.same_gpu and spread.below(-tolerated, policy.alpha_faster * weight):
        return Decision.FASTER
    looks_faster = policy.same_gpu and spread.difference < -tolerated
    if spread.below(detected, policy.beta) and (last or not looks_faster):
        return Decision.NOT_SLOWER
    return Decision.INCONCLUSIVE if last else Decision.CONTINUE
