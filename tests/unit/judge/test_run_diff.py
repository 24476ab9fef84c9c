"""What was run differently, how it was timed and what was counted, between two states of the baselines: each word."""

from __future__ import annotations

import msgspec
import pytest
from record_samples import identity_of, time_of

from pytest_gpuperf.judge.counters import Metric
from pytest_gpuperf.judge.diff import RunDiff, run_diffs
from pytest_gpuperf.model.time_record import Beside, HostTime, TimeRecord, WorkloadRecords

H200 = "nvidia-h200"
SECTORS = Metric("dram__sectors.sum", "sectors", tolerance=0.01)
CYCLES = Metric("sm__cycles.sum", "cycles", tolerance=0.01)


def differ(old: TimeRecord, new: TimeRecord, *rules: Metric) -> tuple[RunDiff, ...]:
    before, after = (WorkloadRecords({}, {H200: one}) for one in (old, new))
    return run_diffs(before, after, rules)


def told(old: TimeRecord, new: TimeRecord) -> list[str]:
    (run,) = differ(old, new)
    return [str(change) for change in run.conditions]


def launched(launch: str, *arguments: str) -> TimeRecord:
    return time_of(identity=identity_of(*arguments, launch=launch))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("grid=(8, 1, 1)", "grid=(9, 1, 1)", "launch grid=(8, 1, 1) -> grid=(9, 1, 1)"),
        ("", "grid=(8, 1, 1)", "launch none -> grid=(8, 1, 1)"),
        ("grid=(8, 1, 1)", "", "launch grid=(8, 1, 1) -> none"),
    ],
)
def test_launch_before_and_after(old: str, new: str, words: str) -> None:
    assert told(launched(old), launched(new)) == [words]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (("a[8] align=256", "int32=8"), ("a[9]", "int32=8"), "arguments a[8] align=256, int32=8 -> a[9], int32=8"),
        (("int32=7", "int32=8"), (), "arguments int32=7, int32=8 -> none"),
        ((), ("int32=7", "int32=8"), "arguments none -> int32=7, int32=8"),
    ],
)
def test_arguments_before_and_after(old: tuple[str, ...], new: tuple[str, ...], words: str) -> None:
    assert told(launched("x", *old), launched("x", *new)) == [words]


def test_declared_work() -> None:
    plain = time_of()
    whole = msgspec.structs.replace(plain, bytes=1024, flops=2048)
    assert told(plain, whole) == ["declared bytes none -> 1024", "declared operations none -> 2048"]
    assert told(whole, plain) == ["declared bytes 1024 -> none", "declared operations 2048 -> none"]
    otherwise = msgspec.structs.replace(plain, timer="graph", cache="warm")
    assert told(plain, otherwise) == ["timer cupti -> graph", "L2 cold -> warm"]


def test_figures_beside_the_time() -> None:
    host = HostTime(ratios=(0.5, 0.7, 0.6), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12")
    plain = time_of()
    beside = msgspec.structs.replace(plain, beside=Beside(memory_bytes=512, accuracy=0.123456, host=host))
    time = "4 us (x0.6 of fixed work)"
    assert told(plain, beside) == [
        "device memory none -> 512 bytes", "error none -> 0.1235", f"host time none -> {time}",
    ]  # fmt: skip
    assert told(beside, plain) == [
        "device memory 512 bytes -> none", "error 0.1235 -> none", f"host time {time} -> none",
    ]  # fmt: skip


def test_counters_that_moved_come_the_largest_change_first_and_from_none_before_all() -> None:
    sectors, cycles = SECTORS.name, CYCLES.name
    same = {"own.c": 5.0}
    old = {sectors: 100.0, cycles: 1000.0, "own.a": 0.0, "own.b": 8.0, "own.d": 1.0, "gone": 1.0, **same}
    new = {sectors: 300.0, cycles: 1001.0, "own.a": 0.5, "own.b": 0.0, "own.d": 0.5, "came": 1.0, "too": 1.0, **same}
    (run,) = differ(time_of(counters=old), time_of(counters=new), SECTORS, CYCLES)
    assert (run.gpu, run.times_ns, run.ratio) == (H200, None, 1.0)
    assert [str(change) for change in run.conditions] == ["counters gone -> came, too"]
    assert [(change.what, change.direction) for change in run.counters] == [
        ("own.a", "neutral"), ("own.b", "neutral"), ("sectors", "worse"), ("own.d", "neutral"),
    ]  # fmt: skip


def test_gpus_that_differ_have_a_line_each_and_others_none() -> None:
    old = WorkloadRecords({}, {"b": time_of(100.0), "a": time_of(100.0), "c": time_of(), "gone": time_of()})
    new = WorkloadRecords({}, {"b": time_of(150.0), "a": time_of(200.0), "c": time_of(), "came": time_of()})
    found = run_diffs(old, new, [])
    assert [(run.gpu, round(run.ratio, 6)) for run in found] == [("a", 2.0), ("b", 1.5)]
