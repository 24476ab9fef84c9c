"""What a block votes for, and the evidence that votes make.

Each block gives r, the log ratio candidate over baseline, and one of single launches the ratios of its sixteen pairs.
Each votes *slower* if r > ln(1 + delta), *faster* if r < -ln(1 + delta), *not slower* if r < ln(1 + epsilon) and *not
faster* if r > -ln(1 + epsilon); a tie votes for nothing.  Each claim has an e-value of its own (``block_scores``).  See
docs/explanation/statistics.md, "Paired blocks" and "Long launches".
"""

from __future__ import annotations

import dataclasses

from pytest_gpuperf.judge.block_scores import Ratios, checked, process_of
from pytest_gpuperf.judge.policy import Policy


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What blocks say so far: log e-values of two of the claims."""

    log_e_slower: float
    log_e_faster: float


def evidence(r: Ratios, policy: Policy) -> Evidence:
    """The e-values of *slower* and *faster* after these blocks."""
    values, bound = checked(r), policy.slower_above
    blocks, pairs = values.shape
    log_e = process_of(pairs).log_e
    return Evidence(log_e(int((values > bound).sum()), blocks), log_e(int((values < -bound).sum()), blocks))
