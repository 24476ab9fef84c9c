"""What differs between two states of the baselines, in figures."""

from __future__ import annotations

import msgspec
import pytest
from record_samples import records_of, static_of, time_of

from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.diff import EvidenceDiff, RunDiff, compare_evidence
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, WorkloadRecords

KEY = Key(module="test_a.py", test="test_scale[8]", workload="scale")
H200, NVRTC = "nvidia-h200", "nvrtc 13.0.88"
RULES = list(METRICS.values())
OTHER = "d1" * 32


def code_changes(old: StaticRecord, new: StaticRecord) -> list[str]:
    """Of one architecture."""
    before, after = ({KEY: WorkloadRecords({("sm_90", NVRTC): one}, {})} for one in (old, new))
    (workload,) = compare_evidence(before, after, RULES).workloads
    (code,) = workload.code
    return [str(change) for change in code.changes]


def timed(record: TimeRecord) -> dict[Key, WorkloadRecords]:
    return {KEY: WorkloadRecords({}, {H200: record})}


def run_diff(old: TimeRecord, new: TimeRecord) -> RunDiff:
    (workload,) = compare_evidence(timed(old), timed(new), RULES).workloads
    (run,) = workload.runs
    return run


def test_figures_that_a_reader_asks_for_come_first() -> None:
    new = static_of(code=OTHER, registers=48, spills=134, occupancy=0.4375, stack_bytes=136, shared_bytes=512)
    assert code_changes(static_of(), new) == [
        "registers 40 -> 48",
        "spill stores 0 -> 134 bytes",
        "spill loads 0 -> 134 bytes",
        "occupancy 50 -> 43.8 % (limited by registers)",
        "stack frame 0 -> 136 bytes",
        "static shared memory 0 -> 512 bytes",
    ]


def test_code_without_a_figure_that_differs_is_told_with_none() -> None:
    assert code_changes(static_of(), static_of(code=OTHER)) == []


def test_figures_that_were_edited_beside_the_hash_of_their_code_are_told() -> None:
    assert code_changes(static_of(), static_of(registers=32)) == ["registers 40 -> 32 (occupancy holds)"]


def test_the_grid_and_the_kernels_name_are_figures_of_a_launch() -> None:
    assert code_changes(static_of(grid=(8, 1, 1)), static_of(grid=(16, 1, 1), kernel="scale2")) == [
        "kernel scale -> scale2", "grid 8x1x1 -> 16x1x1",
    ]  # fmt: skip


def test_what_an_autotuner_chose_is_a_figure() -> None:
    old, new = (msgspec.structs.replace(static_of(), config=config) for config in ("BLOCK=1024", "BLOCK=256"))
    assert code_changes(old, new) == ["configuration BLOCK=1024 -> BLOCK=256"]


def test_equal_records_and_other_hashes_alone_are_no_difference() -> None:
    old = {KEY: WorkloadRecords({("sm_90", NVRTC): static_of()}, {H200: time_of()})}
    assert compare_evidence(old, dict(old), RULES) == EvidenceDiff((), (), ())
    new = {KEY: WorkloadRecords({("sm_90", NVRTC): static_of(source="51" * 32)}, {H200: time_of()})}
    assert compare_evidence(old, new, RULES) == EvidenceDiff((), (), ())


def test_a_time_is_the_geometric_mean_of_its_rounds() -> None:
    one = time_of(1000.0)
    both = msgspec.structs.replace(one, rounds=(*one.rounds, *time_of(4000.0).rounds))
    run = run_diff(one, both)
    assert run.times_ns == pytest.approx((1000.0, 2000.0))
    assert run.ratio == pytest.approx(2.0)


def test_new_gone_and_moved_workloads() -> None:
    stays, old_name, new_name = KEY, Key("test_a.py", "test_old", "k"), Key("test_a.py", "test_new", "k")
    came, went = Key("test_a.py", "test_came", "k"), Key("test_a.py", "test_went", "k")
    before = {stays: records_of(), old_name: records_of(code="a1" * 32), went: records_of(code="b1" * 32)}
    after = {stays: records_of(), new_name: records_of(code="a1" * 32), came: records_of(code="e1" * 32)}
    diff = compare_evidence(before, after, RULES, renamed={new_name: old_name})
    assert [(one.key, one.was) for one in diff.workloads] == [(new_name, old_name)]
    assert [*diff.new] == [came]
    assert [*diff.gone] == [went]


def test_records_of_a_target_more_are_no_new_workload() -> None:
    code = {("sm_90", NVRTC): static_of()}
    old, new = WorkloadRecords(code, {}), WorkloadRecords({**code, ("sm_120", NVRTC): static_of()}, {H200: time_of()})
    assert compare_evidence({KEY: old}, {KEY: new}, RULES) == EvidenceDiff((), (), ())


def test_one_compiler_in_the_place_of_another_is_compared_with_it() -> None:
    before = {KEY: WorkloadRecords({("sm_90", NVRTC): static_of()}, {})}
    after = {KEY: WorkloadRecords({("sm_90", "nvrtc 13.2.51"): static_of(code=OTHER, registers=48)}, {})}
    diff = compare_evidence(before, after, RULES)
    changes = [str(change) for change in diff.workloads[0].code[0].changes]
    assert changes == [f"compiler {NVRTC} -> nvrtc 13.2.51", "registers 40 -> 48 (occupancy holds)"]
    before[KEY].static.update({("sm_80", NVRTC): static_of(), ("sm_90", "nvrtc 12.9.41"): static_of()})
    after[KEY].static[("sm_80", NVRTC)] = static_of(code=OTHER)
    (workload,) = compare_evidence(before, after, RULES).workloads
    assert [one.arch for one in workload.code] == ["sm_80"], "which of two compilers it replaces is not known"


def test_every_change_says_of_which_kernel_architecture_compiler_and_gpu_it_is() -> None:
    old = {KEY: WorkloadRecords({("sm_90", NVRTC): static_of(kernel="was")}, {H200: time_of(1000.0, kernel="was")})}
    new = {KEY: WorkloadRecords({("sm_90", NVRTC): static_of(code=OTHER, kernel="is")}, {H200: time_of(2000.0)})}
    (one,) = compare_evidence(old, new, RULES).workloads
    assert (one.key, one.kernel, one.was) == (KEY, "is", None)
    assert [code.arch for code in one.code] == ["sm_90"]
    assert [run.gpu for run in one.runs] == [H200]
    assert compare_evidence(old, {}, RULES).gone == (KEY,)
    assert compare_evidence({}, new, RULES).new == (KEY,)


def test_a_grid_that_only_one_side_knows_and_spills_that_got_more() -> None:
    assert code_changes(static_of(grid=(8, 1, 1)), static_of(code=OTHER)) == []
    before, after = ({KEY: WorkloadRecords({("sm_90", NVRTC): one}, {})} for one in (static_of(), static_of(
        code=OTHER, spills=4)))  # fmt: skip
    (one,) = compare_evidence(before, after, RULES).workloads
    found = [(change.what, change.direction) for change in one.code[0].changes]
    assert found == [("spill stores", "worse"), ("spill loads", "worse")]
