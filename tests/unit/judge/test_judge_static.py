"""Machine code is compared exactly, and each figure has its direction."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_samples import HALF, KEY, OCCUPANCY, PROFILE, STATIC, static

from pytest_gpuperf.judge.static_rules import OCCUPANCY as OCCUPANCY_RULE
from pytest_gpuperf.judge.static_rules import large_steps_count
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Occupancy, StaticRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

WORSE, BETTER, SAME, UNCHANGED = Verdict.WORSE, Verdict.BETTER, Verdict.SAME, Verdict.UNCHANGED


def compare(new: StaticRecord, old: StaticRecord = STATIC) -> Judgement:
    return compare_static(KEY, "sm_90", old, new)


def change(judgement: Judgement, what: str) -> Change:
    return next(found for found in judgement.changes if found.what == what)


def with_classes(**counts: int) -> dict[str, Any]:
    return {"opcodes": {**PROFILE.opcodes, **counts}}


@pytest.mark.parametrize(("old", "new", "verdict", "words"), [
    ({"spill_store_bytes": 16}, {"spill_store_bytes": 17}, WORSE, "spill stores 16 -> 17 bytes"),
    ({"spill_store_bytes": 16}, {"spill_store_bytes": 15}, BETTER, "spill stores 16 -> 15 bytes"),
    ({"spill_load_bytes": 16}, {"spill_load_bytes": 17}, WORSE, "spill loads 16 -> 17 bytes"),
    ({"stack_bytes": 16}, {"stack_bytes": 17}, WORSE, "stack frame 16 -> 17 bytes"),
    ({}, {"registers": 64, "occupancy": HALF}, WORSE, "occupancy 100 -> 50 % (limited by registers, before by warps)"),
    ({"occupancy": HALF}, {}, BETTER, "occupancy 50 -> 100 % (limited by warps, before by registers)"),
    ({"occupancy": HALF}, {"occupancy": msgspec.structs.replace(HALF, fraction=0.25)}, WORSE,
     "occupancy 50 -> 25 % (limited by registers)"),
    ({}, {"registers": 40}, SAME, "registers 32 -> 40 (occupancy holds)"),
    ({}, {"registers": 40, "occupancy": HALF}, WORSE, "registers 32 -> 40"),
    ({}, {"instructions": 66}, SAME, "instructions 60 -> 66"),
    ({}, {"instructions": 50}, SAME, "instructions 60 -> 50"),
    ({}, {"barriers": 2}, SAME, "barriers 1 -> 2"),
    ({}, {"shared_bytes": 2048}, SAME, "static shared memory 1024 -> 2048 bytes"),
    ({}, {"constant_bytes": 564}, SAME, "constant memory 560 -> 564 bytes"),
    ({}, {"code_bytes": 2048}, SAME, "code size 1024 -> 2048 bytes"),
    ({}, with_classes(fp64=3), WORSE, "instructions: fp64 0 -> 3 (a double literal such as 1.0?)"),
    (with_classes(fp64=3), with_classes(fp64=9), SAME, "instructions: fp64 3 -> 9"),
    (with_classes(fp64=3), {}, BETTER, "instructions: fp64 3 -> 0"),
    ({}, with_classes(local_load=3), WORSE,
     "instructions: local_load 0 -> 3 (an array or spilled registers in local memory)"),
    ({}, with_classes(local_store=3), WORSE,
     "instructions: local_store 0 -> 3 (an array or spilled registers in local memory)"),
    (with_classes(tensor=8), {}, WORSE, "instructions: tensor 8 -> 0 (tensor cores lie idle)"),
    ({}, with_classes(tensor=8), BETTER, "instructions: tensor 0 -> 8"),
    (with_classes(tensor=8), with_classes(tensor=16), SAME, "instructions: tensor 8 -> 16"),
    ({}, with_classes(branch=1), SAME, "instructions: branch 0 -> 1"),
    (with_classes(branch=1), {}, SAME, "instructions: branch 1 -> 0"),
])  # fmt: skip
def test_verdict_by_figure(old: dict[str, Any], new: dict[str, Any], verdict: Verdict, words: str) -> None:
    found = compare(static(**new), static(code_hash="old", **old))
    assert (found.verdict, words in map(str, found.changes)) == (verdict, True)
    assert verdict is not SAME or {one.direction for one in found.changes} == {"neutral"}


@pytest.mark.parametrize(("old", "new"), [(None, 0), (0, None), (None, None), (None, 8), (8, None)])
def test_spills_that_are_not_known_are_not_compared(old: int | None, new: int | None) -> None:
    judged = compare(static(spill_store_bytes=new, stack_bytes=8), static(spill_store_bytes=old, code_hash="old"))
    assert [one.what for one in judged.changes] == ["stack frame"]


def occupied(percent: float) -> StaticRecord:
    occupancy = Occupancy(blocks_per_sm=20, warps_per_sm=20, fraction=percent / 100, limiter="shared memory")
    return static(occupancy=occupancy, code_hash=f"with {percent}")


@pytest.mark.parametrize(("more", "less", "gates"), [
    (41.6667, 39.5833, False), (100, 93.75, False), (100, 90.1, False), (50, 45.1, False),
    (100, 90, True), (50, 45, True), (33.3333, 30, True), (62.5, 50, True), (6.25, 3.125, True),
])  # fmt: skip
def test_a_step_of_occupancy_of_a_tenth_gates_either_way(more: float, less: float, gates: bool) -> None:
    worse, better = compare(occupied(less), occupied(more)), compare(occupied(more), occupied(less))
    assert (worse.verdict, better.verdict) == ((WORSE, BETTER) if gates else (SAME, SAME))
    assert (change(worse, "occupancy").before, change(worse, "occupancy").after) == (more, less)


def test_a_step_of_occupancy_is_rounded_before_it_is_held_against_a_tenth() -> None:
    assert (large_steps_count(1.0, 0.90004), large_steps_count(1.0, 0.90006)) == ("worse", "neutral")
    third = msgspec.structs.replace(OCCUPANCY, fraction=1 / 3)
    assert OCCUPANCY_RULE.read(static(occupancy=third)) == 33.3333


def test_percentages_are_told_with_one_decimal_unless_that_makes_them_equal() -> None:
    pairs = [(41.6667, 39.5833), (100.0, 18.75), (0.02, 0.04), (1.0625, "none")]
    told = [Change(what="occupancy", before=before, after=after, unit="%").figures for before, after in pairs]
    assert told == ["41.7 -> 39.6 %", "100 -> 18.8 %", "0.02 -> 0.04 %", "1.0625 -> none %"]


def test_a_judgement_says_whose_code_it_is_and_what_changed() -> None:
    old = static(spill_store_bytes=8, spill_load_bytes=4, code_hash="old")
    assert compare(static(), old) == Judgement(
        key=KEY, target="sm_90", kind="static", verdict=BETTER,
        reason="the machine code got better: spill stores, spill loads",
        changes=(
            Change(what="spill stores", before=8, after=0, unit="bytes", direction="better"),
            Change(what="spill loads", before=4, after=0, unit="bytes", direction="better"),
        ),
    )  # fmt: skip
    edited = msgspec.structs.replace(STATIC, source_hash="a comment was added")
    assert compare(edited) == Judgement(key=KEY, target="sm_90", kind="static", verdict=UNCHANGED)
    both = compare(static(occupancy=HALF), static(spill_store_bytes=32, code_hash="old"))
    assert (both.verdict, both.reason) == (WORSE, "the machine code got worse: occupancy")
    assert [(one.what, one.direction) for one in both.changes] == [("spill stores", "better"), ("occupancy", "worse")]
    other = compare(static(opcodes={"global_load": 8, "fp32": 20, "branch": 1}))
    assert [one.what.removeprefix("instructions: ") for one in other.changes] == [
        "branch", "global_load", "global_store",
    ]  # fmt: skip
    assert other.reason == "the machine code changed; no gated metric regressed"


def test_a_changed_launch_is_shown_and_judged_by_its_occupancy() -> None:
    judged = compare(msgspec.structs.replace(STATIC, block=(1024, 1, 1), occupancy=HALF, dynamic_shared_bytes=64))
    assert [one.what for one in judged.changes] == ["block", "occupancy", "dynamic shared memory"]
    assert str(judged.changes[0]) == "block 256x1x1 -> 1024x1x1"
    assert (judged.verdict, judged.reason) == (WORSE, "the launch got worse: occupancy")
    assert judged.notes == ("the machine code is that of the baseline",)
    other = compare(msgspec.structs.replace(STATIC, block=(128, 1, 1), dynamic_shared_bytes=64))
    assert (other.verdict, other.reason) == (
        SAME, "the launch changed (block 256x1x1 -> 128x1x1, dynamic shared memory 0 -> 64 bytes): needs a timing run",
    )  # fmt: skip
    added = compare(STATIC, msgspec.structs.replace(STATIC, block=None))
    assert str(added.changes[0]) == "block not launched -> 256x1x1"


# --- compilers and autotuners --------------------------------------------------------------------


@pytest.mark.parametrize(("was", "now", "remedy"), [
    ("nvrtc 13.0.88", "nvrtc 13.1.2", "compile with the same version"),
    ("unknown", "unknown", "build it with CUDA 13, whose code names its compiler"),
    ("", "", "build it with CUDA 13, whose code names its compiler"),
    ("triton", "triton", "build it with CUDA 13, whose code names its compiler"),
])  # fmt: skip
def test_of_code_of_another_compiler_only_what_costs_by_itself_gates(was: str, now: str, remedy: str) -> None:
    """Every verdict names both."""
    notes = (f"the baseline was compiled by {was or 'unknown'}, this is {now or 'unknown'}",)
    reason = f"another compiler: {remedy}, or accept it with pytest --update-baselines"
    now_doubles = static(registers=48, opcodes={"fp64": 9})
    same = compare_static(KEY, "sm_90", STATIC, now_doubles, toolchains=(was, now))
    assert same.verdict is (Verdict.SAME if now == "nvrtc 13.1.2" else Verdict.NOT_COMPARABLE), "the same source"
    edited = msgspec.structs.replace(now_doubles, source_hash="edited")
    judged = compare_static(KEY, "sm_90", STATIC, edited, toolchains=(was, now))
    assert (judged.verdict, judged.reason, judged.notes) == (Verdict.NOT_COMPARABLE, reason, notes)
    assert [(one.what, one.direction) for one in judged.changes][:1] == [("registers", "neutral")]
    assert {one.direction for one in judged.changes} == {"neutral"}
    judged = compare_static(KEY, "sm_90", STATIC, static(spill_store_bytes=8), toolchains=(was, now))
    assert (judged.verdict, judged.reason) == (WORSE, "the machine code got worse: spill stores")
    assert judged.notes == same.notes == notes
    assert compare_static(KEY, "sm_90", STATIC, STATIC, toolchains=(was, now)).verdict is UNCHANGED


def test_code_of_one_compiler_is_compared() -> None:
    same = ("nvrtc 13.0.88", "nvrtc 13.0.88")
    assert compare_static(KEY, "sm_90", STATIC, static(spill_store_bytes=8), toolchains=same).verdict is WORSE


WIDE, NARROW = "BLOCK=1024, num_warps=4", "BLOCK=256, num_warps=8"


@pytest.mark.parametrize(("was", "now", "gates"), [
    (WIDE, NARROW, False), (WIDE, WIDE, True), ("", WIDE, True), (WIDE, "", True), ("", "", True),
])  # fmt: skip
def test_code_of_another_configuration_is_neither_worse_nor_better(was: str, now: str, gates: bool) -> None:
    old = msgspec.structs.replace(static(code_hash="old"), config=was)
    new = msgspec.structs.replace(static(spill_store_bytes=16), config=now)
    judged = compare(new, old)
    assert judged.verdict is (WORSE if gates else Verdict.NOT_COMPARABLE)
    assert [one.what for one in judged.changes] == ["spill stores"]
    if not gates:
        assert judged.reason == (
            f"the configuration was {WIDE} and is {NARROW}: figures of two configurations are not "
            "comparable. Accept this one with pytest --update-baselines, or fix the configuration of the autotuner"
        )
    equal = msgspec.structs.replace(new, profile=old.profile)
    assert compare(equal, old).verdict is UNCHANGED
