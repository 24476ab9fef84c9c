"""What waits for a second process becomes a verdict by one that ran the same, and went the way of the first one."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest
from judge_samples import EDITED, KEY, identity, rounds, time_case

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.paired_verdict import judge_pairs, unconfirmed
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.evidence import Identity
from pytest_gpuperf.model.verdict import Change, Verdict
from pytest_gpuperf.timing.blocks import Noise
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.timing.pending_confirmations import (
    Confirmation,
    PairedPending,
    UnpairedPending,
    is_not_slower,
    not_comparable,
    of_pairs,
    ratios_of,
    settled,
)
from pytest_gpuperf.timing.sample_stats import SlowShare
from pytest_gpuperf.timing.sustained import SustainedSlots
from pytest_gpuperf.timing.taken_block import NO_SLOW, Block

POLICY = Policy(alpha=1e-3)
BASE = [[100.0, 100.1], [99.9, 100.0], [100.1, 100.2], [100.0, 99.9], [100.0, 100.1]]
CALLABLE = identity(code="")
OTHER_ARGUMENTS = {"arguments": ("int32=8",)}
SLOTS = SustainedSlots(samples=40, occupied_s=0.05, kernel_s=0.05)


def pairing(r: float = 0.02, **changes: Any) -> Pairing:
    blocks = tuple(Block(r=r, order="ABBA") for _ in range(40))
    paired = judge_blocks([r] * 40, POLICY, stopped=True)
    return dataclasses.replace(Pairing(paired, blocks, seed=3, size=6, noise=Noise(0.001), seconds=1.0), **changes)


def paired_pending(new: Identity = EDITED, first: Pairing | None = None) -> PairedPending:
    first, case = first or pairing(), time_case(BASE, [102.0] * 4, new=new)
    return PairedPending(case, POLICY, first, judge_pairs(case, POLICY, first.paired).judgement, budget_s=5.0)


def unpaired_pending(**changes: Any) -> UnpairedPending:
    case = time_case(BASE, [110.0] * 16, new=CALLABLE)
    judgement = judge_time(case, POLICY).judgement
    assert judgement.verdict is Verdict.SLOWER
    return UnpairedPending(case, POLICY, judgement, budget_s=5.0, **changes)


def blocks(r: float = 0.02, count: int = 40, new: Identity = EDITED, **changes: Any) -> Confirmation:
    return Confirmation(key=KEY, identity=new, r=(r,) * count, seed=4, **changes)


def timed(midmean: float, new: Identity = CALLABLE, **changes: Any) -> Confirmation:
    taken = rounds([[midmean] * 16], session="new")
    return Confirmation(key=KEY, identity=new, rounds=taken, not_paired="it is a callable", **changes)


def test_what_two_processes_find_slower_is_slower_with_the_coins_of_both() -> None:
    found = settled(paired_pending(), blocks())
    assert (found.verdict, "in two processes" in found.reason) == (Verdict.SLOWER, True)
    assert found.time is not None
    assert (found.time.seeds, found.time.confirm_blocks, found.time.pair_slot) == ((3, 4), 9, "short")


def test_blocks_of_the_second_process_prove_at_its_own_rate() -> None:
    assert settled(paired_pending(), blocks(count=9)).verdict is Verdict.SLOWER
    assert settled(paired_pending(), blocks(count=8)).verdict is Verdict.SUSPECT
    assert settled(paired_pending(), blocks(0.0)).verdict is Verdict.INCONCLUSIVE


def test_blocks_of_single_launches_are_judged_by_all_of_their_pairs() -> None:
    assert settled(paired_pending(), blocks(count=5)).verdict is Verdict.SUSPECT
    assert settled(paired_pending(), blocks(count=5, pairs=((0.02,) * 16,) * 5)).verdict is Verdict.SLOWER


@pytest.mark.parametrize("new", [identity(code="cc"), identity(code="bb", **OTHER_ARGUMENTS)])
def test_a_second_process_that_runs_something_else_confirms_nothing(new: Identity) -> None:
    found = settled(paired_pending(), blocks(new=new))
    assert found.verdict is Verdict.SUSPECT
    assert "no second process could say: it ran other code or other arguments" in found.reason


def test_a_callable_on_other_arguments_confirms_nothing() -> None:
    other = identity(code="", **OTHER_ARGUMENTS)
    assert settled(unpaired_pending(), timed(110.0, other)).verdict is Verdict.SUSPECT
    assert settled(unpaired_pending(), timed(110.0)).verdict is Verdict.SLOWER


def test_equal_machine_code_of_an_edited_source_confirms() -> None:
    assert settled(paired_pending(), blocks(new=identity(code="bb", source="u"))).verdict is Verdict.SLOWER


def test_rounds_do_not_confirm_paired_blocks() -> None:
    found = settled(paired_pending(), timed(110.0, EDITED))
    assert found.verdict is Verdict.SUSPECT
    assert "it could not pair the two: it is a callable" in found.reason


def test_paired_blocks_do_not_confirm_rounds() -> None:
    found = settled(unpaired_pending(), blocks(new=CALLABLE))
    assert found.verdict is Verdict.SUSPECT
    assert "it could pair the two, and the first process could not" in found.reason


def test_rounds_are_confirmed_by_those_of_the_second_process() -> None:
    assert settled(unpaired_pending(), timed(100.0)).verdict is Verdict.INCONCLUSIVE
    assert settled(unpaired_pending(), timed(110.0, disturbed=("times drifted",))).verdict is not Verdict.SLOWER


@pytest.mark.parametrize(
    ("midmean", "verdict"), [(110.0, Verdict.SLOWER), (100.0, Verdict.NOT_COMPARABLE), (90.0, Verdict.NOT_COMPARABLE)]
)
def test_where_nothing_good_can_be_proven_slower_is_all_the_same(midmean: float, verdict: Verdict) -> None:
    found = settled(unpaired_pending(not_comparable="the record's cubin is lost"), timed(midmean))
    assert found.verdict is verdict
    assert (found.reason == "the record's cubin is lost") is (verdict is Verdict.NOT_COMPARABLE)


def test_a_suspect_stays_red_where_nothing_good_can_be_proven() -> None:
    found = settled(unpaired_pending(not_comparable="the record's cubin is lost"), blocks(new=CALLABLE))
    assert found.verdict is Verdict.SUSPECT


def test_what_is_not_comparable_keeps_its_figures() -> None:
    first = unpaired_pending().judgement
    assert first.time is not None
    refused = msgspec.structs.replace(first, time=msgspec.structs.replace(first.time, not_paired="it is lost"))
    found = not_comparable(unconfirmed(refused, "so it is"), "the cubin is lost")
    assert found.time == first.time


def test_what_the_first_process_found_beside_the_blocks_stays() -> None:
    pending = paired_pending(first=pairing(sustained=SLOTS, unmoved="there was no memory to move them"))
    changed = (Change("registers", 32, 40),)
    told = dataclasses.replace(pending, judgement=msgspec.structs.replace(pending.judgement, changes=changed))
    found = settled(told, blocks(discarded=2))
    assert found.changes == changed
    assert found.time is not None
    assert found.time.pair_slot == "sustained"
    assert "there was no memory to move them" in found.notes
    assert "2 blocks of the second process were discarded" in found.notes
    assert not any("were discarded" in note for note in settled(told, blocks()).notes)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (blocks(0.0, new=CALLABLE), True),
        (blocks(-0.02, new=CALLABLE), True),
        (Confirmation(key=KEY, identity=CALLABLE, r=(-0.012, 0.0) * 20), True),
        (blocks(0.02, new=CALLABLE), False),
        (blocks(0.0, 3, new=CALLABLE), False),
        (blocks(0.0, new=CALLABLE, not_paired="its process ended"), False),
        (blocks(0.0, new=identity(code="", **OTHER_ARGUMENTS)), False),
    ],
)
def test_a_pair_of_processes_that_is_not_slower_is_proven_to_be(pair: Confirmation, expected: bool) -> None:
    assert is_not_slower(paired_pending(CALLABLE), pair) is expected


def test_the_ratios_of_all_pairs_of_processes_are_of_midmeans_unless_the_tail_decided() -> None:
    later = blocks(0.01, new=CALLABLE, tails=((math.log(1.5),),) * 40)
    by_votes = ratios_of(paired_pending(CALLABLE), [later])
    assert by_votes == pytest.approx([math.exp(0.02), math.exp(0.01)])
    by_tail = judge_blocks([0.0] * 60, POLICY, tails=[(math.log(1.8),)] * 60)
    assert (by_tail.decision, by_tail.by_tail) == (Decision.SLOWER, True)
    pending = paired_pending(CALLABLE, pairing(paired=by_tail))
    assert ratios_of(pending, [later, blocks(0.01, new=CALLABLE)]) == pytest.approx([1.8, 1.5, math.exp(0.01)])


def test_rare_slow_launches_of_the_first_process_are_told() -> None:
    by_tail = judge_blocks([0.0] * 60, POLICY, tails=[(math.log(1.8),)] * 60)
    rarely = Block(r=0.0, order="ABBA", samples=10, slow=(NO_SLOW, SlowShare(2, 10.0)))
    told = settled(paired_pending(first=pairing(paired=by_tail, blocks=(rarely,))), blocks())
    assert "20 % of its samples take 5 times as long as most (0 % of the baseline's)" in told.reason


def test_a_confirmation_has_the_blocks_that_count() -> None:
    taken = [Block(r=0.1, order="ABBA", tail=0.2), Block(r=9.0, order="ABBA", tail=0.3, discarded=True)] * 2
    found = of_pairs(KEY, EDITED, pairing(blocks=(*taken, Block(r=0.4, order="ABBA", tail=0.5))))
    assert found == Confirmation(
        key=KEY, identity=EDITED, r=(0.1, 0.1, 0.4), tails=((0.2,), (0.3, 0.2), (0.3, 0.5)), seed=3, discarded=2
    )


def test_a_confirmation_of_single_launches_has_their_pairs() -> None:
    long = Block(r=0.1, order="AB", times_ns=(1e6, 1.1e6))
    found = of_pairs(KEY, EDITED, pairing(blocks=(long, long)))
    assert found.pairs == ((pytest.approx(math.log(1.1)),),) * 2
