"""Figures beside the time: exact ones at their tolerance, times of the CPU by votes of blocks and two processes."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.beside_verdict import (
    decided,
    incomparable,
    judge_exact,
    judge_host_time,
    least_time_ns,
    new,
    not_asked_for,
    policy_of,
    told_from_the_record,
    unheard_of,
)
from pytest_gpuperf.judge.block_decision import Paired
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.beside_figures import Beside, HostTime, updated
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import BesideEvidence, Change, Judgement, Verdict
from pytest_gpuperf.timing.pending_confirmations import BesidePending
from pytest_gpuperf.workload.confirm_beside import settled

KEY = Key(module="test_a.py", test="test_a", workload="work")
RECORD = HostTime(ratios=(0.5, 0.49, 0.51), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12")
ALPHA = 6e-4


def exactly(before: float, after: float, kind: BesideEvidence = "memory", tolerance: float | None = None) -> Judgement:
    return judge_exact(KEY, "nvidia-h200", kind, before, after, tolerance)


@given(before=st.integers(200, 1 << 40), percent=st.integers(1, 400))
def test_one_percent_more_memory_is_always_worse_and_one_less_better(before: int, percent: int) -> None:
    more = before + math.ceil(before * percent / 100)
    assert exactly(before, more).verdict is Verdict.WORSE
    assert exactly(more, before).verdict in ((Verdict.BETTER,) if percent > 1 else (Verdict.BETTER, Verdict.SAME))
    assert exactly(before, before).verdict is Verdict.SAME


@given(before=st.floats(0, 1e6), after=st.floats(0, 1e6), tolerance=st.floats(0.001, 0.5))
def test_what_is_not_more_is_never_worse_and_what_is_within_the_tolerance_is_the_same(
    before: float, after: float, tolerance: float
) -> None:
    verdict = exactly(before, after, "accuracy", tolerance).verdict
    assert (verdict is Verdict.WORSE) == (after > before + tolerance * before)
    assert (verdict is Verdict.BETTER) == (after < before - tolerance * before)


def test_an_exact_result_that_is_exact_no_more_is_worse() -> None:
    judged = exactly(0.0, 0.4, "accuracy")
    assert (judged.verdict, str(judged.changes[0])) == (Verdict.WORSE, "error 0 -> 0.4")


def test_a_change_of_memory_names_both_sizes_and_the_percent() -> None:
    judged = exactly(400_000, 404_000)
    assert str(judged.changes[0]) == "device memory 400000 -> 404000 bytes (+1.00 %)"
    assert (judged.kind, judged.target) == ("memory", "nvidia-h200")


def host(r: list[float], second: list[float] | None = None, time_ns: float | None = None) -> Judgement:
    """The verdict on log ratios to the record; the clock tells the same unless ``time_ns`` says otherwise."""
    policy = policy_of("host", None, ALPHA, 10 * ALPHA)
    paired = decided([one + math.log(0.5) for one in r], RECORD, policy, stopped=True)
    time_ns = paired.ratio * RECORD.time_ns if time_ns is None else time_ns
    judged = judge_host_time(KEY, "nvidia-h200", "host", paired, time_ns, least_time_ns(RECORD, policy))
    if second is None:
        return judged
    pending = BesidePending("host", RECORD, policy, paired, time_ns, judged, 5.0)
    processes, final = list[list[float]](), None
    while final is None:  # all that come later find the same
        processes.append([one + math.log(0.5) for one in second])
        final = settled(pending, processes, "it crashed")
    return final


@given(r=st.lists(st.floats(-0.5, math.log(1.045)), min_size=1, max_size=96))
def test_blocks_within_the_tolerance_never_make_it_worse(r: list[float]) -> None:
    assert host(r).verdict is not Verdict.WORSE


@given(r=st.lists(st.floats(math.log(1.0451), 0.5), min_size=20, max_size=96))
def test_blocks_that_all_are_beyond_the_tolerance_make_it_worse_in_every_process(r: list[float]) -> None:
    judged = host(r, second=r)
    assert judged.verdict is Verdict.WORSE
    assert judged.changes[0].direction == "worse"


def test_what_the_second_process_does_not_find_is_open_and_without_one_it_is_suspect() -> None:
    judged = host([0.1] * 30, second=[0.0] * 30)
    assert (judged.verdict, judged.reason) == (
        Verdict.INCONCLUSIVE,
        "worse in the first process, and x1.000 in a second one",
    )
    assert judged.changes[0].direction == "neutral"
    judged = host([0.1] * 30, second=[])
    assert (judged.verdict, judged.reason) == (
        Verdict.SUSPECT,
        "worse in one process, and no second one could say: it crashed",
    )
    assert unheard_of(judged, "x").verdict.is_regression


def test_equal_work_passes_and_a_gain_is_better() -> None:
    coin = random.Random(1)
    assert host([coin.gauss(0, 0.005) for _ in range(20)]).verdict in (Verdict.SAME, Verdict.NOT_SLOWER)
    assert host([-0.2] * 30, second=[-0.2] * 30).verdict is Verdict.BETTER


@pytest.mark.parametrize(("second", "reason"), [
    ([0.0] * 30, "better in the first process, and x1.000 in a second one"),
    ([0.1] * 30, "better in the first process, and x1.105 in a second one"),
    ([], "better in one process, and no second one could say: it crashed"),
])  # fmt: skip
def test_what_is_better_in_one_process_alone_passes_as_not_slower(second: list[float], reason: str) -> None:
    judged = host([-0.1] * 30, second=second)
    assert (judged.verdict, judged.reason) == (Verdict.NOT_SLOWER, reason)


@pytest.mark.parametrize(
    ("time_ns", "verdict"),
    [(3820.0, Verdict.BETTER), *((ns, Verdict.NOT_SLOWER) for ns in (3835.0, 4000.0, 5000.0))],
)
def test_a_process_whose_canary_alone_is_slow_is_not_better(time_ns: float, verdict: Verdict) -> None:
    """4000 ns are on record, and the tolerance is 4.5 %."""
    for second in (None, [-0.11] * 30):
        judged = host([-0.11] * 30, second=second, time_ns=time_ns)
        assert judged.verdict is verdict
        if verdict is Verdict.NOT_SLOWER:
            assert (
                judged.reason == "better beside the canary and not by the clock, where it would take less than 3.83 us"
            )
            assert judged.changes[0].direction == "neutral"


def in_processes(ratios: list[float], record: HostTime = RECORD) -> Judgement | None:
    """The verdict where each process has one ratio, whatever its block; None while it is open."""
    policy = policy_of("host", None, ALPHA, 10 * ALPHA)
    middle = math.log(sorted(record.ratios)[len(record.ratios) // 2])
    blocks = [[math.log(one) + middle] * 30 for one in ratios]
    paired = decided(blocks[0], record, policy, stopped=True)
    judged = judge_host_time(KEY, "nvidia-h200", "host", paired, 5000.0, 1.0)
    return settled(BesidePending("host", record, policy, paired, 5000.0, judged, 5.0), blocks[1:], "it crashed")


@pytest.mark.parametrize(("ratios", "verdict"), [
    ([1.10, 1.10], Verdict.WORSE),
    ([1.058, 1.054], None),
    ([1.058, 1.054, 1.051], Verdict.WORSE),
    ([1.048, 1.047, 1.046, 1.046], None),
    ([1.048, 1.047, 1.046, 1.046, 1.046], Verdict.WORSE),
    ([1.058, 1.054, 1.02], Verdict.INCONCLUSIVE),
])  # fmt: skip
def test_a_mean_that_processes_may_well_be_apart_asks_for_further_ones(
    ratios: list[float], verdict: Verdict | None
) -> None:
    record = HostTime(ratios=(0.5, 0.49, 0.51, 0.505, 0.495), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12")
    judged = in_processes(ratios, record)
    assert (None if judged is None else judged.verdict) is verdict
    if verdict is Verdict.INCONCLUSIVE:
        assert judged is not None
        assert judged.reason == "worse in 2 processes, and x1.020 in a third one"
        assert judged.changes[0].note.endswith("14+9+11 blocks")


def test_the_fewer_processes_a_record_has_and_the_more_they_scatter_the_more_it_takes() -> None:
    one, scattered = (HostTime(ratios=ratios, time_ns=1.0, cpu="", made_by="") for ratios in
                      ((0.5,), (0.5, 0.45, 0.55, 0.46, 0.54)))  # fmt: skip
    assert not told_from_the_record([1.09, 1.09], one)
    assert told_from_the_record([1.11, 1.11], one)
    assert not told_from_the_record([1.2, 1.2], scattered)
    assert told_from_the_record([1.42, 1.42], scattered)


@pytest.mark.parametrize("time_ns", [3000.0, 4000.0, 5000.0])
def test_what_is_worse_is_worse_whatever_the_clock_says(time_ns: float) -> None:
    assert host([0.1] * 30, second=[0.1] * 30, time_ns=time_ns).verdict is Verdict.WORSE


def test_a_change_of_a_host_time_is_told_beside_the_canary_with_its_blocks() -> None:
    judged = host([math.log(1.1)] * 30, second=[math.log(1.1)] * 30)
    change = str(judged.changes[0])
    assert change.startswith("host time 4 us -> 4.4 us (+10.0 % beside the canary, ")
    assert change.endswith(" blocks)")
    assert "+" in change.rpartition(", ")[2]


def test_rates_of_false_and_missed_verdicts_with_the_scatter_of_real_processes() -> None:
    """Processes scatter by 1.5 %, their blocks by 2 % (measured: docs/results/beside_time.md)."""
    coin, loss = random.Random(7), math.log1p(0.1)

    def judged(shift: float) -> Verdict:
        recorded = coin.gauss(0, 0.015 / math.sqrt(5))
        blocks = []
        for _ in range(2):
            process = shift + coin.gauss(0, 0.015) - recorded
            blocks.append([process + coin.gauss(0, 0.02) for _ in range(96)])
        policy = policy_of("host", None, ALPHA, 10 * ALPHA)
        first = decided([one + math.log(0.5) for one in blocks[0]], RECORD, policy)
        if first.decision is not Decision.SLOWER:
            return Verdict.BETTER if first.decision is Decision.FASTER else Verdict.SAME
        second = decided([one + math.log(0.5) for one in blocks[1]], RECORD, policy.confirming(), stopped=True)
        return Verdict.WORSE if second.decision is Decision.SLOWER else Verdict.INCONCLUSIVE

    assert [judged(0.0) for _ in range(300)].count(Verdict.SAME) == 300
    assert [judged(loss) for _ in range(100)].count(Verdict.WORSE) >= 95


@pytest.mark.parametrize(("now", "verdict"), [
    (RECORD, None),
    (HostTime(ratios=(1.0,), time_ns=1.0, cpu="another CPU", made_by="CPython 3.12"), Verdict.INCONCLUSIVE),
    (HostTime(ratios=(1.0,), time_ns=1.0, cpu="a CPU", made_by="CPython 3.13"), Verdict.INCONCLUSIVE),
])  # fmt: skip
def test_what_another_machine_recorded_is_not_compared(now: HostTime, verdict: Verdict | None) -> None:
    judged = incomparable(KEY, "nvidia-h200", "host", RECORD, now)
    assert (None if judged is None else judged.verdict) is verdict
    if judged is not None:
        assert "record it on this machine with pytest --update-baselines=all" in judged.reason


def test_a_newer_figure_replaces_its_kind_and_no_other() -> None:
    old = Beside(memory_bytes=1, host=RECORD)
    assert updated(old, Beside(memory_bytes=2, accuracy=0.0)) == Beside(memory_bytes=2, accuracy=0.0, host=RECORD)
    assert updated(None, old) is old
    assert updated(old, None) is old


def test_a_figure_without_a_record_is_new_with_the_command_that_records_it() -> None:
    assert new(KEY, "nvidia-h200", "host") == Judgement(
        key=KEY, target="nvidia-h200", kind="host", verdict=Verdict.NEW,
        reason="no host time on record: record it with pytest --update-baselines=new",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("accuracy", "its error is on record and the test does not ask for it: give accuracy= again"),
        ("memory", "its device memory is on record and the test does not ask for it: give measure=('memory',) again"),
    ],
)
def test_a_figure_on_record_that_is_not_asked_for_is_not_measured(kind: BesideEvidence, words: str) -> None:
    assert not_asked_for(KEY, "nvidia-h200", kind) == Judgement(
        key=KEY, target="nvidia-h200", kind=kind, verdict=Verdict.NOT_MEASURED,
        reason=f"{words}, or take it out of the record's beside",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "before", "after", "verdict", "change"),
    [
        ("memory", 1000, 1000, "SAME", Change(what="device memory", before="1000", after="1000", unit="bytes")),
        (
            "memory", 1000, 1020, "WORSE",
            Change(
                what="device memory", before="1000", after="1020", unit="bytes", direction="worse", note="+2.00 %"
            ),
        ),
        (
            "accuracy", 0.4, 0.123456, "BETTER",
            Change(what="error", before="0.4", after="0.1235", direction="better", note="-69.1 %"),
        ),
    ],
)  # fmt: skip
def test_an_exact_figure_is_told_with_its_change(
    kind: BesideEvidence, before: float, after: float, verdict: str, change: Change
) -> None:
    found = exactly(before, after, kind)
    words = {"WORSE": "got worse", "BETTER": "got better"}
    reason = f"{change.what} {words[verdict]}" if verdict in words else ""
    assert found == Judgement(
        key=KEY, target="nvidia-h200", kind=kind, verdict=Verdict(verdict), reason=reason, changes=(change,)
    )


def test_what_cannot_be_compared_says_whose_it_is() -> None:
    other = HostTime(ratios=(0.5,), time_ns=4000.0, cpu="another CPU", made_by="CPython 3.12")
    found = incomparable(KEY, "nvidia-h200", "host", RECORD, other)
    assert found is not None
    assert (found.key, found.target, found.kind) == (KEY, "nvidia-h200", "host")


def paired_as(decision: Decision, ratio: float = 1.25, blocks: int = 12) -> Paired:
    evidence = decided([0.0] * 3, RECORD, policy_of("host", None, ALPHA, ALPHA)).evidence
    return Paired(decision, blocks, ratio, None, evidence, 7.0)


HOST_WORDS = {
    Decision.SLOWER: (Verdict.WORSE, "worse", "host time got worse"),
    Decision.FASTER: (Verdict.BETTER, "better", "host time got better"),
    Decision.SAME: (Verdict.SAME, "neutral", ""),
    Decision.NOT_SLOWER: (Verdict.NOT_SLOWER, "neutral", ""),
    Decision.INCONCLUSIVE: (
        Verdict.INCONCLUSIVE, "neutral",
        "neither worse nor not worse is proven: a quieter machine or a larger --gpuperf-budget decides it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("decision", HOST_WORDS)
def test_a_time_of_the_cpu_is_told_with_what_it_would_have_been(decision: Decision) -> None:
    verdict, direction, reason = HOST_WORDS[decision]
    found = judge_host_time(KEY, "nvidia-h200", "host", paired_as(decision), 5000.0, 5001.0)
    assert found == Judgement(
        key=KEY, target="nvidia-h200", kind="host", verdict=verdict, reason=reason,
        changes=(Change(what="host time", before="4 us", after="5 us", direction=direction,  # type: ignore[arg-type]
                        note="+25.0 % beside the canary, 12 blocks"),),
    )  # fmt: skip


def test_the_blocks_of_both_processes_are_told() -> None:
    second = paired_as(Decision.SLOWER, 1.2, 9)
    found = judge_host_time(KEY, "nvidia-h200", "host", paired_as(Decision.SLOWER), 5000.0, 3000.0, [second])
    assert (found.verdict, found.changes[0].note) == (Verdict.WORSE, "+25.0 % beside the canary, 12+9 blocks")
    other = judge_host_time(
        KEY, "nvidia-h200", "host", paired_as(Decision.SLOWER), 5000.0, 3000.0, [paired_as(Decision.SAME, 1.0)]
    )
    assert (other.verdict, other.reason) == (
        Verdict.INCONCLUSIVE, "worse in the first process, and x1.000 in a second one"
    )  # fmt: skip


def test_a_policy_has_its_kinds_tolerance_or_the_one_that_is_given() -> None:
    assert policy_of("host", None, 1e-3, 1e-2) == Policy(
        delta=0.045, epsilon=1.3 * 0.045, alpha=1e-3, alpha_faster=1e-2, blocks_max=96
    )
    given = policy_of("host", 0.2, 1e-3, 1e-2)
    assert (given.delta, given.epsilon) == (0.2, pytest.approx(0.26))
