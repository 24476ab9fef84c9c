"""The verdict on paired blocks: which of four claims their votes prove first, and whether means prove SLOWER.

After every block each claim's e-value is held against its threshold, and the first that reaches it decides, but for
NOT-SLOWER, which waits while SLOWER or FASTER may still come.  Stopping early, running out of time and going on later
are all allowed.  See docs/explanation/statistics.md, "Paired blocks".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.judge.block_scores import RANKS, EProcess, Ratios, Scores, checked, process_of
from pytest_gpuperf.judge.log_times import Logs
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.tail import LEANING, LEANING_LONG, SHARE, worth_at_blocks
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
    log_e_needed: float
    """Natural log of the e-value that SLOWER takes by votes."""
    mean_ratio: float | None = None
    """Candidate over baseline by means, which see rare slow launches; None where they were not taken."""
    by_tail: bool = False
    """True if means prove it slower, and midmeans do not: then ``evidence`` is not what the decision rests on."""
    tail_log_e: float | None = None
    """Natural log of the tail's e-value; None where means were not taken."""
    log_ratios: Logs | None = dataclasses.field(default=None, repr=False, compare=False)
    """Of the blocks used, as blocks x pairs."""


def judge_blocks(r: Ratios, policy: Policy, *, stopped: bool = False, tails: Sequence[Sequence[float]] = ()) -> Paired:
    """Decide as far as the blocks reach; ``stopped``: no more will come.  Raises ``InvalidTimesError``.

    ``tails``, as ``tail.worth_at_blocks`` takes them, let means decide too; votes then have their part of alpha.
    """
    values = checked(r)[: policy.blocks_max]
    tails = tails[: len(values)]
    alpha = policy.alpha * (1 - SHARE) if tails else policy.alpha
    worth = worth_at_blocks(tails, policy.delta) if tails else None
    if values.size:
        codes, stops = judge_many(values[np.newaxis, :], policy, None if worth is None else worth[np.newaxis, :])
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
    means = [t for of_block in tails[:used] for t in of_block]
    found, needed = evidence(values, policy), -math.log(alpha)
    return Paired(
        decision, used, ratio, ratio_interval(values), found, log_e_needed=needed,
        mean_ratio=float(np.mean(np.exp(means))) if means else None,
        by_tail=decision is Decision.SLOWER and found.log_e_slower < needed,
        tail_log_e=float(worth[used - 1]) if worth is not None and used else None, log_ratios=values,
    )  # fmt: skip


def log_e_path(values: Logs, policy: Policy) -> Logs:
    """Natural log of the e-value of *slower* by votes after each of blocks x pairs."""
    scores = np.cumsum((values > policy.slower_above).sum(axis=1))
    return process_of(values.shape[1]).log_e_many(scores, np.arange(1, len(values) + 1))


def judge_many(r: Logs, policy: Policy, worth: Logs | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decide many sequences of equal length at once: ``r`` has one row per sequence, and may have pairs per block.

    A steady kernel between delta and epsilon proves both that it is slower and that it is not slower by epsilon; the
    second has the lower threshold.  So NOT-SLOWER, once proven, waits while the votes for *slower* would pass that
    threshold too: they go on to their own, or fall behind.

    ``worth`` is the tail's evidence after each block (``tail.tail_worth``): it can prove SLOWER at its part of alpha,
    and NOT-SLOWER and FASTER wait while it leans to that.

    Returns for each row an index into SLOWER, FASTER, SAME, NOT_SLOWER (``UNDECIDED``: none yet) and the
    number of blocks used.
    """
    r = r[:, : policy.blocks_max] if r.ndim == 3 else r[:, : policy.blocks_max, np.newaxis]
    blocks, process = r.shape[1], process_of(r.shape[2])
    slower_above, passed_below = policy.slower_above, policy.passed_below
    slower, faster = (r > slower_above).sum(axis=2), (r < -slower_above).sum(axis=2)
    first_slower = _first(slower, policy.alpha * (1 - SHARE) if worth is not None else policy.alpha, process)
    first_faster = _first(faster, policy.alpha_faster, process)
    calm = np.ones(r.shape[:2], dtype=bool)
    if worth is not None:
        worth = worth[:, :blocks]
        first_slower = np.minimum(first_slower, _first_of(worth >= -math.log(policy.alpha * SHARE)))
        calm = worth < (LEANING_LONG if process is RANKS else LEANING)
        first_faster = _first_since(calm, first_faster)
    proven = _first((r < passed_below).sum(axis=2), policy.beta, process)
    all_faster = faster == process.most
    unanimous = np.where(all_faster.all(axis=1), blocks, all_faster.argmin(axis=1))
    passed = np.where(unanimous >= proven, np.minimum(unanimous + 1, proven + FASTER_PATIENCE), proven)
    if math.isfinite(process.unanimous_blocks(policy.alpha, policy.blocks_max)):
        calm = calm & (np.cumsum(slower, axis=1) < process.needed(-math.log(policy.beta), blocks))
    passed = _first_since(calm, passed)
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


def _first_since(held: NDArray[np.bool_], since: NDArray[np.int64]) -> NDArray[np.int64]:
    """Per row, the first number of blocks from ``since`` on at which ``held`` is true; beyond the last if at none."""
    blocks = held.shape[1]
    later = held & (np.arange(1, blocks + 1) >= since[:, np.newaxis])
    first = np.where(later.any(axis=1), later.argmax(axis=1) + 1, np.maximum(since, blocks + 1))
    return np.asarray(first, dtype=np.int64)


def _first(scores: Scores, rate: float, process: EProcess) -> NDArray[np.int64]:
    """Per row, after how many blocks the scores reach ln(1/rate); one more than there are if they never do."""
    return _first_of(np.cumsum(scores, axis=1) >= process.needed(-math.log(rate), scores.shape[1]))


def _first_of(reached: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Per row, the first number of blocks at which it is; more than there are, and than any wait, if at none."""
    never = reached.shape[1] + FASTER_PATIENCE + 1
    return np.asarray(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, never), dtype=np.int64)


def _proven_at(scores: Scores, rate: float, stops: NDArray[np.int64], process: EProcess) -> NDArray[np.bool_]:
    rows = np.arange(scores.shape[0])
    sums = np.cumsum(scores, axis=1)[rows, stops - 1]
    return np.asarray(sums >= process.needed(-math.log(rate), scores.shape[1])[stops - 1])


def _at_the_end(values: Logs, policy: Policy) -> Decision:
    """What was proven while waiting for FASTER or SLOWER, SAME as at any other stop; inconclusive if nothing was."""
    passed_below, (blocks, pairs) = policy.passed_below, values.shape
    process = process_of(pairs)
    not_slower, not_faster = ((side < passed_below).sum(axis=1)[np.newaxis, :] for side in (values, -values))
    if not blocks or _first(not_slower, policy.beta, process)[0] > blocks:
        return Decision.INCONCLUSIVE
    same = _proven_at(not_faster, policy.beta, np.array([blocks]), process)[0]
    return Decision.SAME if same else Decision.NOT_SLOWER


def ratio_interval(r: Ratios) -> tuple[float, float] | None:
    """95 % interval of the median ratio, valid whenever one stops; None with too few blocks for one."""
    ratios = checked(r)
    if not ratios.size:
        return None
    # order statistics of all pairs by inverting two one-sided e-processes, each at half of 5 %
    blocks, pairs = ratios.shape
    rank = int(process_of(pairs).needed(math.log(2 / (1 - 0.95)), blocks)[-1])
    values = np.sort(ratios, axis=None)
    if rank > values.size:
        return None
    return math.exp(values[values.size - rank]), math.exp(values[rank - 1])
