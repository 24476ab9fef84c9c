"""Pending confirmations: regressions of one process, a second process's evidence, the verdict on both.

``workload.second_process`` starts it.  It goes the way that the first one went, or confirms nothing: paired blocks do
not confirm rounds, nor rounds paired blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from pytest_gpuperf.config.call_arguments import BesideKind
from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.paired_verdict import judge_pairs, unheard
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.judge.time_verdict import confirm_rounds
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.beside_figures import HostTime
from pytest_gpuperf.model.evidence import Identity, Key
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.timing.paired_run import Pairing


class Confirmation(Record, frozen=True):
    """Evidence of a confirming process about one workload: blocks or, where it could not pair, rounds."""

    key: Key
    identity: Identity
    r: tuple[float, ...] = ()
    """Log ratios of the blocks that count, one of each; see ``pairs``."""
    pairs: tuple[tuple[float, ...], ...] = ()
    """Log ratios of the pairs of the blocks that count, where they are of single launches."""
    tails: tuple[tuple[float, ...], ...] = ()
    """Log ratios of means of each block that counts and of those discarded since the one before."""
    seed: int = 0
    discarded: int = 0
    rounds: tuple[Round, ...] = ()
    disturbed: tuple[str, ...] = ()
    """Reasons why the rounds are unfit as evidence; empty if they are fit."""
    not_paired: str = ""
    """Reason why there are rounds and no blocks; empty if there are blocks."""


def of_pairs(key: Key, identity: Identity, pairing: Pairing) -> Confirmation:
    discarded = len(pairing.blocks) - len(pairing.r)
    return Confirmation(
        key=key, identity=identity, r=pairing.r, pairs=pairing.ratios if pairing.long else (), seed=pairing.seed,
        tails=pairing.tails, discarded=discarded,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class PairedPending:
    """A workload that paired blocks of the gating process called slower."""

    case: TimeCase
    policy: Policy
    pairing: Pairing
    judgement: Judgement
    budget_s: float


@dataclasses.dataclass(frozen=True)
class UnpairedPending:
    """A workload that rounds of the gating process called slower than the record."""

    case: TimeCase
    policy: Policy
    judgement: Judgement
    budget_s: float
    """Time budget of this workload, or the time of its rounds where that was more."""
    not_comparable: str = ""
    """Reason why nothing but SLOWER can be the verdict; empty where any can."""


@dataclasses.dataclass(frozen=True)
class BesidePending:
    """A time of the CPU that blocks of the gating process called worse or better (``workload.confirm_beside``)."""

    kind: BesideKind
    record: HostTime
    policy: Policy
    paired: Paired
    time_ns: float
    judgement: Judgement
    budget_s: float


PendingConfirmation = PairedPending | UnpairedPending


def settled(pending: PendingConfirmation, second: Confirmation) -> Judgement:
    """Final judgement of a pending confirmation, from a second process's evidence."""
    first = pending.case.identity
    if second.identity != first and not second.identity.same_execution(first):  # a callable has no code to compare
        return unheard(
            pending.judgement,
            "it ran other code or other arguments: seed what is random, and do not edit during a run",
        )
    return _unpaired(pending, second) if isinstance(pending, UnpairedPending) else _paired(pending, second)


def _paired(pending: PairedPending, second: Confirmation) -> Judgement:
    if second.not_paired:
        return unheard(pending.judgement, f"it could not pair the two: {second.not_paired}")
    first = pending.pairing
    notes = list(first.remarks)
    if second.discarded:
        notes.append(f"{second.discarded} blocks of the second process were discarded")
    blocks = _blocks(pending, second)
    step = judge_pairs(
        pending.case, pending.policy, first.paired, blocks, seeds=(first.seed, second.seed), notes=notes,
        slow_launches=first.slow_launches,
        pair_slot="sustained" if first.sustained else "short",
    )  # fmt: skip
    return msgspec.structs.replace(step.judgement, changes=pending.judgement.changes)


def ratios_of(pending: PairedPending, pairs: Sequence[Confirmation]) -> list[float]:
    """Candidate over baseline of the gating process's pair of processes and of those after it."""
    paired = [pending.pairing.paired, *(_blocks(pending, one) for one in pairs)]
    by_tail = pending.pairing.paired.by_tail
    return [one.mean_ratio if by_tail and one.mean_ratio is not None else one.ratio for one in paired]


def is_not_slower(pending: PairedPending, pair: Confirmation) -> bool:
    """Whether the blocks of a pair of processes prove it to be less slower than the detection bound."""
    if pair.not_paired or pair.identity != pending.case.identity:  # a callable has no code to compare
        return False
    return _blocks(pending, pair).decision in (Decision.SAME, Decision.NOT_SLOWER, Decision.FASTER)


def _blocks(pending: PairedPending, second: Confirmation) -> Paired:
    return judge_blocks(second.pairs or second.r, pending.policy.confirming(), stopped=True, tails=second.tails)


def _unpaired(pending: UnpairedPending, second: Confirmation) -> Judgement:
    if not second.not_paired:
        return unheard(pending.judgement, "it could pair the two, and the first process could not")
    case = dataclasses.replace(pending.case, rounds=second.rounds, disturbances=second.disturbed)
    judged = confirm_rounds(pending.judgement, case, pending.policy)
    return not_comparable(judged, pending.not_comparable) if pending.not_comparable else judged


def not_comparable(judgement: Judgement, reason: str) -> Judgement:
    """The judgement as NOT-COMPARABLE for this reason, unless it is red: that is proven all the same."""
    if judgement.verdict.is_regression:
        return judgement
    time = judgement.time and msgspec.structs.replace(judgement.time, not_paired="")  # the reason says it
    return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason, time=time)
