"""What differs between two states of the baselines, in figures: machine code, runs, workloads that came or went."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from record_samples import identity_of, records_of, static_of, time_of

from pytest_gpuperf.judge.counters import Metric
from pytest_gpuperf.judge.diff import EvidenceDiff, TargetDiff, compare_evidence
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import HostTime, Identity, SecondaryMetrics, TimeRecord, WorkloadRecords

KEY = Key(module="test_a.py", test="test_scale[8]", workload="scale")
H200, NVRTC, NEWER = "nvidia-h200", "nvrtc 13.0.88", "nvrtc 13.2.51"
OTHER = "d1" * 32
SECTORS = Metric("dram__sectors.sum", "sectors", tolerance=0.01)
CYCLES = Metric("sm__cycles.sum", "cycles", tolerance=0.01)
Code = dict[tuple[str, str], StaticRecord]


def compared(old: Code, new: Code, *times: TimeRecord) -> EvidenceDiff:
    """``times``: before and after, on one GPU."""
    gpus = [{H200: one} for one in times] or [{}, {}]
    before, after = ({KEY: WorkloadRecords(*one)} for one in zip((old, new), gpus, strict=True))
    return compare_evidence(before, after, [SECTORS, CYCLES])


def run_diff(old: TimeRecord, new: TimeRecord) -> TargetDiff:
    (workload,) = compared({}, {}, old, new).workloads
    (run,) = workload.targets
    return run


# --- machine code --------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new", "changes"), [
    ({}, {"code": OTHER}, []),
    ({}, {"registers": 32}, ["registers 40 -> 32 (occupancy holds)"]),
    ({"grid": (8, 1, 1)}, {"grid": (16, 1, 1), "kernel": "scale2"}, ["kernel scale -> scale2", "grid 8x1x1 -> 16x1x1"]),
    ({"grid": (8, 1, 1)}, {"code": OTHER}, []),
    ({}, {"code": OTHER, "registers": 48, "spills": 134, "occupancy": 0.4375, "stack_bytes": 136, "shared_bytes": 512},
     ["registers 40 -> 48", "spill stores 0 -> 134 bytes", "spill loads 0 -> 134 bytes",
      "occupancy 50 -> 43.8 % (limited by registers)", "stack frame 0 -> 136 bytes",
      "static shared memory 0 -> 512 bytes"]),
])  # fmt: skip
def test_figures_asked_for_come_first(old: dict[str, Any], new: dict[str, Any], changes: list[str]) -> None:
    at = ("sm_90", NVRTC)
    (workload,) = compared({at: static_of(**old)}, {at: static_of(**new)}).workloads
    (code,) = workload.targets
    assert (code.target, [str(change) for change in code.changes]) == ("sm_90", changes)


def test_what_an_autotuner_chose_is_a_figure() -> None:
    at = ("sm_90", NVRTC)
    old, new = ({at: msgspec.structs.replace(static_of(), config=config)} for config in ("BLOCK=1024", "BLOCK=256"))
    changes = compared(old, new).workloads[0].targets[0].changes
    assert [str(change) for change in changes] == ["configuration BLOCK=1024 -> BLOCK=256"]


def test_one_compiler_in_the_place_of_another_is_compared_with_it() -> None:
    before, after = {("sm_90", NVRTC): static_of()}, {("sm_90", NEWER): static_of(code=OTHER, registers=48)}
    changes = compared(before, after).workloads[0].targets[0].changes
    assert [str(change) for change in changes] == [
        f"compiler {NVRTC} -> {NEWER}",
        "registers 40 -> 48 (occupancy holds)",
    ]
    before |= {("sm_80", NVRTC): static_of(), ("sm_90", "nvrtc 12.9.41"): static_of()}
    after[("sm_80", NVRTC)] = static_of(code=OTHER)
    (workload,) = compared(before, after).workloads
    assert [one.target for one in workload.targets] == ["sm_80", "sm_90"]
    assert str(workload.targets[1].changes[0]) == f"compiler {NVRTC} -> {NEWER}", "the later of two"
    beside = compared(before, before | after).workloads[0].targets[-1].changes
    assert str(beside[0]) == f"compiler {NVRTC} -> {NEWER}", "one that came beside it"


# --- workloads -----------------------------------------------------------------------------------


def test_equal_records_and_other_hashes_alone_are_no_difference() -> None:
    old, edited = {("sm_90", NVRTC): static_of()}, {("sm_90", NVRTC): static_of(source="51" * 32)}
    nothing = EvidenceDiff((), (), ())
    assert compared(old, dict(old), time_of(), time_of()) == nothing
    assert compared(old, edited, time_of(), time_of(symbol="other")) == nothing
    assert compared(old, {**old, ("sm_120", NVRTC): static_of()}) == nothing, "a target more is no new workload"


def test_new_gone_and_moved_workloads() -> None:
    moved, old_name = Key("test_a.py", "test_new", "k"), Key("test_a.py", "test_old", "k")
    came, went = Key("test_a.py", "test_came", "k"), Key("test_a.py", "test_went", "k")
    before = {KEY: records_of(), old_name: records_of(code="a1" * 32), went: records_of(code="b1" * 32)}
    after = {KEY: records_of(), moved: records_of(code="a1" * 32), came: records_of(code="e1" * 32)}
    diff = compare_evidence(before, after, [], renamed={moved: old_name})
    assert [(one.key, one.was) for one in diff.workloads] == [(moved, old_name)]
    assert (diff.new, diff.removed) == ((came,), (went,))


@pytest.mark.parametrize(("kernel", "name"), [("is", "is"), ("", "was")])
def test_a_workload_has_the_kernel_of_its_later_state(kernel: str, name: str) -> None:
    diff = compared({}, {}, time_of(1000.0, kernel="was"), time_of(2000.0, kernel=kernel))
    assert [(one.key, one.kernel, one.was) for one in diff.workloads] == [(KEY, name, None)]


def test_the_largest_loss_of_time_and_then_the_figures_that_got_worse_are_the_severity() -> None:
    at = ("sm_90", NVRTC)
    times = [time_of(midmean, counters={SECTORS.name: count}) for midmean, count in ((1000.0, 1.0), (1204.0, 2.0))]
    (worse,) = compared({at: static_of()}, {at: static_of(code=OTHER, spills=4)}, *times).workloads
    (better,) = compared({at: static_of()}, {at: static_of(registers=32)}, time_of(1000.0), time_of(900.0)).workloads
    assert (worse.severity, better.severity) == ((1.2, 3), (1.0, 0))


# --- runs ----------------------------------------------------------------------------------------


def launched(launch: str, *arguments: str) -> Identity:
    return identity_of(*arguments, launch=launch)


CONDITIONS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"identity": launched("grid=(8, 1, 1)")}, {"identity": launched("grid=(9, 1, 1)")},
     ["launch grid=(8, 1, 1) -> grid=(9, 1, 1)"]),
    ({"identity": launched("")}, {"identity": launched("grid=(8, 1, 1)")}, ["launch none -> grid=(8, 1, 1)"]),
    ({"identity": launched("x", "a[8] align=256", "int32=8")}, {"identity": launched("x", "a[9]")},
     ["arguments a[8] align=256, int32=8 -> a[9]"]),
    ({}, {"bytes": 1024, "flops": 2048}, ["declared bytes none -> 1024", "declared operations none -> 2048"]),
    ({}, {"timer": "graph", "cache": "warm"}, ["timer cupti -> graph", "L2 cold -> warm"]),
    ({}, {"secondary": SecondaryMetrics(memory_bytes=512, accuracy=0.123456, host=HostTime(
        ratios=(0.5, 0.7, 0.6), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12"))},
     ["device memory none -> 512 bytes", "error none -> 0.1235", "host time none -> 4 us (x0.6 of fixed work)"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), CONDITIONS)
def test_conditions_before_and_after(old: dict[str, Any], new: dict[str, Any], words: list[str]) -> None:
    before, after = (msgspec.structs.replace(time_of(), **one) for one in (old, new))
    assert [str(change) for change in run_diff(before, after).changes] == words
    turned = [f"{change.what} {change.after} -> {change.before}" for change in run_diff(after, before).changes]
    assert turned == words


def test_counters_that_moved_come_the_largest_change_first_and_from_none_before_all() -> None:
    sectors, cycles, same = SECTORS.name, CYCLES.name, {"own.c": 5.0}
    old = {sectors: 100.0, cycles: 1000.0, "own.a": 0.0, "own.b": 8.0, "own.d": 8.0, "gone": 1.0, **same}
    new = {sectors: 300.0, cycles: 1001.0, "own.a": 0.5, "own.b": 0.0, "own.d": 2.0, "came": 1.0, "too": 1.0, **same}
    run = run_diff(time_of(counters=old), time_of(counters=new))
    assert (run.target, run.times_ns, run.ratio) == (H200, None, 1.0)
    assert str(run.changes[0]) == "counters gone -> came, too"
    assert [(change.what, change.direction) for change in run.changes[1:]] == [
        ("own.a", "neutral"), ("own.b", "neutral"), ("own.d", "neutral"), ("sectors", "worse"),
    ]  # fmt: skip


def test_gpus_that_differ_have_a_line_each_and_others_none() -> None:
    """A time is the geometric mean of its rounds."""
    both = msgspec.structs.replace(time_of(100.0), rounds=(*time_of(100.0).rounds, *time_of(400.0).rounds))
    old = WorkloadRecords({}, {"b": time_of(100.0), "a": time_of(100.0), "c": time_of(), "gone": time_of()})
    new = WorkloadRecords({}, {"b": time_of(150.0), "a": both, "c": time_of(), "came": time_of()})
    (workload,) = compare_evidence({KEY: old}, {KEY: new}, []).workloads
    assert [(run.target, round(run.ratio, 6)) for run in workload.targets] == [("a", 2.0), ("b", 1.5)]
    assert workload.targets[0].times_ns == pytest.approx((100.0, 200.0))
