"""The verdict on paired blocks: which of four claims their votes prove first.

After every block each claim's e-value is held against its threshold, and the first that reaches it decides, but for
NOT-SLOWER, which waits while SLOWER or FASTER may still come.  Stopping early, running out of time and going on later
are all allowed.  See docs/explanation/statistics.md, "Paired blocks".
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.judge.block_scores import EProcess, Ratios, Scores, checked, process_of
from pytest_gpuperf.judge.log_times import Logs
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.votes import Evidence, evidence

FASTER_PATIENCE = 20
"""Blocks taken beyond the proof of NOT-SLOWER while all of them vote *faster*: enough for a run's 500th workload."""

_CODES = (Decision.SLOWER, Decision.FASTER, Decision.SAME, Decision.NOT_SLOWER)
UNDECIDED = len(_CODES)


@dataclasses.dataclass(frozen=True)
class Paired:
    """The decision on one sequence of blocks."""

    decision: Decision
    blocks: int
    """Blocks used: those after the decision fell are not looked at."""
    ratio: float
    """Candidate over baseline: exp of the median r, of all pairs of all blocks; NaN without a block."""
    interval: tuple[float, float] | None
    """95 % interval of the ratio, valid at any stopping time; None below 8 blocks, 2 of single launches."""
    evidence: Evidence


def judge_blocks(r: Ratios, policy: Policy, *, stopped: bool = False) -> Paired:
    """Decide as far as the blocks reach; ``stopped``: no more will come.  Raises ``InvalidTimesError``."""
    values = checked(r)[: policy.blocks_max]
    if values.size:
        codes, stops = judge_many(values[np.newaxis, :], policy)
        code, used = int(codes[0]), int(stops[0])
    else:
        code, used = UNDECIDED, 0
    values = values[:used]
    if code == UNDECIDED:
        ended = stopped or used >= policy.blocks_max
        decision = _at_the_end(values, policy) if ended else Decision.CONTINUE
    else:
        decision = _CODES[code]
    ratio = math.exp(float(np.median(values))) if used else math.nan
    return Paired(decision, used, ratio, ratio_interval(values), evidence(values, policy))


def judge_many(r: Logs, policy: Policy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decide many sequences of equal length at once: ``r`` has one row per sequence, and may have pairs per block.

    A steady kernel between delta and epsilon proves both that it is slower and that it is not slower by epsilon; the
    second has the lower threshold.  So NOT-SLOWER, once proven, waits while the votes for *slower* would pass that
    threshold too: they go on to their own, or fall behind.

    Returns for each row an index into SLOWER, FASTER, SAME, NOT_SLOWER (``UNDECIDED``: none yet) and the
    number of blocks used.
    """
    r = r[:, : policy.blocks_max] if r.ndim == 3 else r[:, : policy.blocks_max, np.newaxis]
    blocks, process = r.shape[1], process_of(r.shape[2])
    slower_above, passed_below = math.log1p(policy.delta), math.log1p(policy.epsilon)
    slower, faster = (r > slower_above).sum(axis=2), (r < -slower_above).sum(axis=2)
    first_slower = _first(slower, policy.alpha, process)
    first_faster = _first(faster, policy.alpha_faster, process)
    proven = _first((r < passed_below).sum(axis=2), policy.beta, process)
    all_faster = faster == process.most
    unanimous = np.where(all_faster.all(axis=1), blocks, all_faster.argmin(axis=1))
    passed = np.where(unanimous >= proven, np.minimum(unanimous + 1, proven + FASTER_PATIENCE), proven)
    if math.isfinite(process.unanimous_blocks(policy.alpha, policy.blocks_max)):
        passed = _behind(slower, policy.beta, passed, process)
    if blocks == policy.blocks_max:
        passed = np.where(proven <= blocks, np.minimum(passed, blocks), passed)
    stops = np.minimum(np.minimum(np.minimum(first_slower, first_faster), passed), blocks)
    at_stop = _proven_at((r > -passed_below).sum(axis=2), policy.beta, stops, process)
    codes = np.select(
        [first_slower <= stops, first_faster <= stops, (passed <= stops) & at_stop, passed <= stops],
        [0, 1, 2, 3],
        default=UNDECIDED,
    )
    return codes.astype(np.int64), stops


def _behind(scores: Scores, rate: float, since: NDArray[np.int64], process: EProcess) -> NDArray[np.int64]:
    """Per row, the first number of blocks from ``since`` on at which the scores are worth less than ln(1/rate)."""
    blocks = scores.shape[1]
    behind = np.cumsum(scores, axis=1) < process.needed(-math.log(rate), blocks)
    behind &= np.arange(1, blocks + 1) >= since[:, np.newaxis]
    first = np.where(behind.any(axis=1), behind.argmax(axis=1) + 1, np.maximum(since, blocks + 1))
    return np.asarray(first, dtype=np.int64)


def _first(scores: Scores, rate: float, process: EProcess) -> NDArray[np.int64]:
    """Per row, after how many blocks the scores reach ln(1/rate); one more than there are if they never do."""
    blocks = scores.shape[1]
    reached = np.cumsum(scores, axis=1) >= process.needed(-math.log(rate), blocks)
    never = blocks + FASTER_PATIENCE + 1
    return np.asarray(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, never), dtype=np.int64)


def _proven_at(scores: Scores, rate: float, stops: NDArray[np.int64], process: EProcess) -> NDArray[np.bool_]:
    rows = np.arange(scores.shape[0])
    sums = np.cumsum(scores, axis=1)[rows, stops - 1]
    return np.asarray(sums >= process.needed(-math.log(rate), scores.shape[1])[stops - 1])


def _at_the_end(values: Logs, policy: Policy) -> Decision:
    """What was proven while waiting for FASTER or SLOWER, SAME as at any other stop; inconclusive if nothing was."""
    passed_below, (blocks, pairs) = math.log1p(policy.epsilon), values.shape
    process = process_of(pairs)
    not_slower, not_faster = ((side < passed_below).sum(axis=1)[np.newaxis, :] for side in (values, -values))
    if not blocks or _first(not_slower, policy.beta, process)[0] > blocks:
        return Decision.INCONCLUSIVE
    same = _proven_at(not_faster, policy.beta, np.array([blocks]), process)[0]
    return Decision.SAME if same else Decision.NOT_SLOWER


def ratio_interval(r: Ratios, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of the median ratio at ``level``, valid whenever one stops; None with too few blocks for one."""
    ratios = checked(r)
    if not ratios.size:
        return None
    # order statistics of all pairs by inverting two one-sided e-processes, each at half of 1 - level
    blocks, pairs = ratios.shape
    rank = int(process_of(pairs).needed(math.log(2 / (1 - level)), blocks)[-1])
    values = np.sort(ratios, axis=None)
    if rank > values.size:
        return None
    return math.exp(values[values.size - rank]), math.exp(values[rank - 1])
