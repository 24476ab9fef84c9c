"""The verdict where the baseline cannot be run again: rounds of today against rounds of the record.

It resolves about 5 %: whatever differs between two recordings besides the code (``omega``) does not average out.
Rounds are looked at when there are 2, 4, 8 and 16; the looks share ``alpha`` (union bound).  See
docs/explanation/statistics.md, "Unpaired rounds".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.two_sample import Spread, compare_rounds
from pytest_gpuperf.model.timed_round import RecordedRound
from pytest_gpuperf.model.tolerance import COARSE

LOOKS: tuple[int, ...] = (2, 4, 8, 16)
"""Candidate rounds at which the evidence is looked at."""
WEIGHTS: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
"""Each look's share of alpha."""
LEAST_OMEGA = 0.003
"""Least spread between two recordings on one GPU, a standard deviation of log times."""
OTHER_GPU_OMEGA = 0.02
"""The same between two GPUs of one model; it differs from kernel to kernel."""


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


def coarse(policy: Policy) -> Policy:
    """The policy with tolerances raised to what unpaired rounds resolve."""
    return dataclasses.replace(
        policy, delta=max(policy.delta, COARSE.delta), epsilon=max(policy.epsilon, COARSE.epsilon)
    )


def judge_unpaired(
    baseline: Sequence[RecordedRound], candidate: Sequence[RecordedRound], policy: Policy, *, same_gpu: bool = True
) -> Unpaired:
    """Look at the first 2, 4, 8 or 16 candidate rounds, as many of these as there are.

    ``same_gpu``: both sides ran on the same physical GPU; if not, nothing is proven slower or faster.  Tolerances are
    those of ``coarse``.  Raises ``InvalidTimesError`` if a side has no round or a midmean is no time.
    """
    look = max((index for index, needed in enumerate(LOOKS) if needed <= len(candidate)), default=-1)
    used = LOOKS[look] if look >= 0 else len(candidate)
    spread = compare_rounds(baseline, candidate[:used], max(policy.omega or 0.0, LEAST_OMEGA))
    wanted = LOOKS[look + 1] if look + 1 < len(LOOKS) else 0
    decision = Decision.CONTINUE
    if look >= 0:
        decision = _decide(spread, coarse(policy), WEIGHTS[look], last=not wanted, same_gpu=same_gpu)
    return Unpaired(
        decision=decision, spread=spread, ratio=math.exp(spread.difference), interval=spread.interval(0.95),
        rounds_used=used, rounds_wanted=wanted if decision is Decision.CONTINUE else 0,
    )  # fmt: skip


def _decide(spread: Spread, policy: Policy, weight: float, *, last: bool, same_gpu: bool) -> Decision:
    """The first that applies; what looks faster is looked at again, so that it can be called FASTER."""
    tolerated, detected = math.log1p(policy.delta), math.log1p(policy.epsilon)
    if same_gpu and spread.exceeds(tolerated, policy.alpha * weight):
        return Decision.SLOWER
    if same_gpu and spread.below(-tolerated, policy.alpha_faster * weight):
        return Decision.FASTER
    looks_faster = same_gpu and spread.difference < -tolerated
    if spread.below(detected, policy.beta) and (last or not looks_faster):
        return Decision.NOT_SLOWER
    return Decision.INCONCLUSIVE if last else Decision.CONTINUE
