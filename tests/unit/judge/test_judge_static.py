"""Machine code is compared exactly, and each figure has its direction."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import strategies as st
from judge_samples import KEY, OCCUPANCY, PROFILE, STATIC, static

from pytest_gpuperf.judge.static_rules import OCCUPANCY as OCCUPANCY_RULE
from pytest_gpuperf.judge.static_rules import large_steps_count
from pytest_gpuperf.judge.static_verdict import compare_static, missing_static, with_launch_of
from pytest_gpuperf.model.evidence import Occupancy, StaticRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

HALF = Occupancy(blocks_per_sm=4, warps_per_sm=32, fraction=0.5, limiter="registers")


def compare(new: StaticRecord, old: StaticRecord = STATIC) -> Judgement:
    return compare_static(KEY, "sm_90", old, new)


def change(judgement: Judgement, what: str) -> Change:
    return next(found for found in judgement.changes if found.what == what)


def test_equal_code_and_launch_is_unchanged_whatever_the_source() -> None:
    edited = msgspec.structs.replace(STATIC, source_hash="a comment was added")
    assert compare(edited).verdict is Verdict.UNCHANGED
    assert compare(edited).changes == ()


@pytest.mark.parametrize(
    ("field", "what", "unit"),
    [
        ("spill_store_bytes", "spill stores", "bytes"),
        ("spill_load_bytes", "spill loads", "bytes"),
        ("stack_bytes", "stack frame", "bytes"),
    ],
)
def test_one_byte_more_is_worse_and_one_less_is_better(field: str, what: str, unit: str) -> None:
    old = static(**{field: 16}, code_hash="old")
    worse = compare(static(**{field: 17}), old)
    assert worse.verdict is Verdict.WORSE
    assert str(change(worse, what)) == f"{what} 16 -> 17 {unit}"
    assert worse.reason == f"the machine code got worse: {what}"
    assert compare(static(**{field: 15}), old).verdict is Verdict.BETTER


@pytest.mark.parametrize(("old", "new"), [(None, 0), (0, None), (None, None), (None, 8), (8, None)])
def test_spills_that_are_not_known_are_not_compared(old: int | None, new: int | None) -> None:
    judged = compare(static(spill_store_bytes=new, stack_bytes=8), static(spill_store_bytes=old, code_hash="old"))
    assert [change.what for change in judged.changes] == ["stack frame"]


def test_a_lower_occupancy_is_worse_and_says_what_limits_it() -> None:
    judged = compare(static(registers=64, occupancy=HALF))
    assert judged.verdict is Verdict.WORSE
    assert str(change(judged, "occupancy")) == "occupancy 100 -> 50 % (limited by registers, before by warps)"
    assert change(judged, "registers").direction == "neutral"
    assert compare(STATIC, static(occupancy=HALF)).verdict is Verdict.BETTER


def test_what_limits_the_occupancy_as_before_is_said_once() -> None:
    lower = msgspec.structs.replace(HALF, fraction=0.25)
    judged = compare(static(registers=128, occupancy=lower), static(registers=64, occupancy=HALF, code_hash="old"))
    assert str(change(judged, "occupancy")) == "occupancy 50 -> 25 % (limited by registers)"


def occupied(percent: float) -> StaticRecord:
    occupancy = Occupancy(blocks_per_sm=20, warps_per_sm=20, fraction=percent / 100, limiter="shared memory")
    return static(occupancy=occupancy, code_hash=f"with {percent}")


@pytest.mark.parametrize(
    ("before", "after"), [(41.6667, 39.5833), (39.5833, 41.6667), (100, 93.75), (100, 90.1), (50, 45.1)]
)
def test_a_small_step_of_occupancy_is_noted_and_does_not_gate(before: float, after: float) -> None:
    judged = compare(occupied(after), occupied(before))
    assert judged.verdict is Verdict.SAME
    assert change(judged, "occupancy").direction == "neutral"
    assert (change(judged, "occupancy").before, change(judged, "occupancy").after) == (before, after)


@pytest.mark.parametrize(("more", "less"), [(100, 90), (50, 45), (33.3333, 30), (62.5, 50), (6.25, 3.125)])
def test_a_step_of_occupancy_of_a_tenth_gates_either_way(more: float, less: float) -> None:
    assert compare(occupied(less), occupied(more)).verdict is Verdict.WORSE
    assert compare(occupied(more), occupied(less)).verdict is Verdict.BETTER


def test_percentages_are_told_with_one_decimal_unless_that_makes_them_equal() -> None:
    def told(before: float, after: float) -> str:
        return str(Change(what="occupancy", before=before, after=after, unit="%"))

    assert told(41.6667, 39.5833) == "occupancy 41.7 -> 39.6 %"
    assert told(100.0, 18.75) == "occupancy 100 -> 18.8 %"
    assert told(0.02, 0.04) == "occupancy 0.02 -> 0.04 %"
    assert str(Change(what="ratio", before=1.0625, after="none")) == "ratio 1.0625 -> none"


def test_more_registers_at_the_same_occupancy_are_only_noted() -> None:
    judged = compare(static(registers=40))
    assert judged.verdict is Verdict.SAME
    assert str(change(judged, "registers")) == "registers 32 -> 40 (occupancy holds)"


@pytest.mark.parametrize("instructions", [50, 66])
def test_the_number_of_instructions_is_noted_and_never_gates(instructions: int) -> None:
    judged = compare(static(instructions=instructions))
    assert judged.verdict is Verdict.SAME
    assert change(judged, "instructions").after == instructions


@pytest.mark.parametrize("name", ["fp64", "local_load", "local_store"])
def test_a_class_that_appears_is_worse_but_more_of_it_is_noted(name: str) -> None:
    appeared = compare(static(opcodes={**PROFILE.opcodes, name: 3}))
    assert appeared.verdict is Verdict.WORSE
    assert str(change(appeared, f"instructions: {name}")).startswith(f"instructions: {name} 0 -> 3 (")
    some = static(opcodes={**PROFILE.opcodes, name: 3}, code_hash="old")
    assert compare(static(opcodes={**PROFILE.opcodes, name: 9}), some).verdict is Verdict.SAME
    assert compare(STATIC, some).verdict is Verdict.BETTER


def test_tensor_instructions_that_vanish_are_worse_and_that_appear_are_better() -> None:
    some = static(opcodes={**PROFILE.opcodes, "tensor": 8})
    more = static(opcodes={**PROFILE.opcodes, "tensor": 16}, code_hash="cc")
    assert compare(STATIC, some).verdict is Verdict.WORSE
    assert compare(some).verdict is Verdict.BETTER
    assert compare(more, some).verdict is Verdict.SAME


def test_other_classes_are_listed_and_never_gate() -> None:
    judged = compare(static(opcodes={"global_load": 8, "fp32": 20, "branch": 1}))
    assert judged.verdict is Verdict.SAME
    assert [str(c) for c in judged.changes] == [
        "instructions: branch 0 -> 1",
        "instructions: global_load 4 -> 8",
        "instructions: global_store 4 -> 0",
    ]
    assert judged.reason == "the machine code changed, and nothing in it that gates"


def test_better_and_worse_together_is_worse_with_both_listed() -> None:
    old = static(spill_store_bytes=32, code_hash="old")
    judged = compare(static(occupancy=HALF), old)
    assert judged.verdict is Verdict.WORSE
    assert [(c.what, c.direction) for c in judged.changes] == [("spill stores", "better"), ("occupancy", "worse")]


def test_a_changed_launch_is_shown_and_judged_by_its_occupancy() -> None:
    new = msgspec.structs.replace(STATIC, block=(1024, 1, 1), occupancy=HALF, dynamic_shared_bytes=64)
    judged = compare(new)
    assert judged.verdict is Verdict.WORSE
    assert [c.what for c in judged.changes] == ["block", "occupancy", "dynamic shared memory"]
    assert str(judged.changes[0]) == "block 256x1x1 -> 1024x1x1"
    assert judged.reason == "the launch of the same machine code got worse: occupancy"


def test_the_code_on_record_in_another_launch_is_the_same_and_known_as_such() -> None:
    assert compare(STATIC).verdict is Verdict.UNCHANGED
    other = compare(msgspec.structs.replace(STATIC, dynamic_shared_bytes=64))
    assert (other.verdict, "launch changed" in other.reason) == (Verdict.SAME, True)
    edited = compare(msgspec.structs.replace(static(registers=33), dynamic_shared_bytes=64))
    assert (edited.verdict, "launch changed" in edited.reason) == (Verdict.SAME, False)


def test_a_kernel_without_a_launch_has_no_occupancy_to_compare() -> None:
    judged = compare(static(occupancy=None))
    assert judged.verdict is Verdict.SAME
    assert judged.changes == ()


def test_a_kernel_that_was_not_launched_is_compared_under_the_launch_that_its_baseline_knows() -> None:
    not_launched = msgspec.structs.replace(STATIC, block=None, occupancy=None)
    assert compare(not_launched).verdict is Verdict.UNCHANGED
    spilling = msgspec.structs.replace(static(spill_store_bytes=8), block=None, occupancy=None)
    assert [c.what for c in compare(spilling).changes] == ["spill stores"]


def test_another_toolchain_is_not_comparable_unless_the_code_is_the_same() -> None:
    toolchains = ("nvrtc 13.0.88", "nvrtc 13.1.2")
    judged = compare_static(KEY, "sm_90", STATIC, static(spill_store_bytes=8), toolchains=toolchains)
    assert judged.verdict is Verdict.NOT_COMPARABLE
    assert "compiled by nvrtc 13.0.88, this is nvrtc 13.1.2" in judged.reason
    assert compare_static(KEY, "sm_90", STATIC, STATIC, toolchains=toolchains).verdict is Verdict.UNCHANGED
    same = ("nvrtc 13.0.88", "nvrtc 13.0.88")
    judged = compare_static(KEY, "sm_90", STATIC, static(spill_store_bytes=8), toolchains=same)
    assert judged.verdict is Verdict.WORSE


def test_a_judgement_says_whose_code_it_is_and_what_got_better() -> None:
    old = static(spill_store_bytes=8, spill_load_bytes=4, code_hash="old")
    assert compare(static(), old) == Judgement(
        key=KEY, target="sm_90", kind="static", verdict=Verdict.BETTER,
        reason="the machine code got better: spill stores, spill loads",
        changes=(
            Change(what="spill stores", before=8, after=0, unit="bytes", direction="better"),
            Change(what="spill loads", before=4, after=0, unit="bytes", direction="better"),
        ),
    )  # fmt: skip
    assert compare(STATIC) == Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.UNCHANGED)


def test_without_a_record_of_this_compiler_the_others_are_named() -> None:
    assert missing_static(KEY, "sm_90", "nvrtc 13.1.2", ("nvrtc 12.9.1", "nvrtc 13.0.88")) == Judgement(
        key=KEY, target="sm_90", kind="static", verdict=Verdict.NOT_COMPARABLE,
        reason="the baseline was compiled by nvrtc 12.9.1, nvrtc 13.0.88, this is nvrtc 13.1.2: compile with the same "
        "version, or record one for this version too with pytest --update-baselines=new",
    )  # fmt: skip
    new = missing_static(KEY, "sm_90", "nvrtc 13.0.88")
    assert (new.verdict, new.reason) == (Verdict.NEW, "no baseline: record one with pytest --update-baselines=new")
    toolchains = ("nvrtc 13.0.88", "nvrtc 13.1.2")
    other = compare_static(KEY, "sm_90", STATIC, static(), toolchains=toolchains)
    assert (other.key, other.target) == (KEY, "sm_90")


@pytest.mark.parametrize(
    ("profile", "occupancy"), [({}, OCCUPANCY), ({"registers": 33}, None), ({"shared_bytes": 2048}, None)]
)
def test_a_kernel_that_was_not_launched_has_its_baselines_occupancy_if_it_takes_as_much(
    profile: dict[str, int], occupancy: Occupancy | None
) -> None:
    launched = msgspec.structs.replace(static(dynamic_shared_bytes=64, code_hash="old"), grid=(8, 1, 1))
    not_launched = msgspec.structs.replace(static(occupancy=None, **profile), block=None)
    found = with_launch_of(not_launched, launched)
    assert (found.block, found.dynamic_shared_bytes, found.occupancy) == ((256, 1, 1), 64, occupancy)
    assert found.grid == (8, 1, 1)
    assert found.profile == not_launched.profile


def test_a_launch_that_the_baseline_lacks_is_shown() -> None:
    old = msgspec.structs.replace(STATIC, block=None)
    assert str(compare(STATIC, old).changes[0]) == "block not launched -> 256x1x1"


@pytest.mark.parametrize("name", ["unknown", "", "triton"])
def test_machine_code_of_unknown_compilers_is_compared_as_far_as_being_equal(name: str) -> None:
    judged = compare_static(KEY, "sm_90", STATIC, static(), toolchains=(name, name))
    assert judged.verdict is Verdict.NOT_COMPARABLE
    assert judged.reason == (
        "the machine code does not say which compiler made it, and only equal code can be compared then: build it "
        "with CUDA 13, which names its assembler, or accept it with pytest --update-baselines"
    )
    assert compare_static(KEY, "sm_90", STATIC, STATIC, toolchains=(name, name)).verdict is Verdict.UNCHANGED


def test_notes_stand_with_what_they_explain() -> None:
    """More registers lower the occupancy: no word that it holds; the note on a class that vanished is not needed."""
    fewer = compare(static(registers=40, occupancy=HALF))
    assert change(fewer, "registers").note == ""
    vanished = compare(static(), static(opcodes={**PROFILE.opcodes, "fp64": 3}, code_hash="old"))
    assert change(vanished, "instructions: fp64").note == ""
    assert change(compare(static(barriers=2)), "barriers").note == ""


def test_a_step_of_occupancy_is_rounded_before_it_is_held_against_a_tenth() -> None:
    assert large_steps_count(1.0, 0.90004) == "worse"
    assert large_steps_count(1.0, 0.90006) == "neutral"
    third = msgspec.structs.replace(OCCUPANCY, fraction=1 / 3)
    assert OCCUPANCY_RULE.read(static(occupancy=third)) == 33.3333


figures = st.fixed_dictionaries(
    {name: st.integers(0, 3) for name in ("registers", "stack_bytes", "spill_store_bytes", "instructions")}
)


# --- what an autotuner chose ---------------------------------------------------------------------


def tuned(config: str, record: StaticRecord) -> StaticRecord:
    return msgspec.structs.replace(record, config=config)


WIDE, NARROW = "BLOCK=1024, num_warps=4", "BLOCK=256, num_warps=8"


@pytest.mark.parametrize("figures", [{"spill_store_bytes": 16}, {"stack_bytes": 0}, {"instructions": 80}])
def test_code_of_another_configuration_is_neither_worse_nor_better(figures: dict[str, int]) -> None:
    old = static(stack_bytes=8, code_hash="old")
    judged = compare(tuned(NARROW, static(**{"stack_bytes": 8, **figures})), tuned(WIDE, old))
    assert judged.verdict is Verdict.NOT_COMPARABLE
    assert judged.changes == compare(static(**{"stack_bytes": 8, **figures}), old).changes != ()
    assert judged.reason.startswith(f"the configuration was {WIDE} and is {NARROW}: ")
    assert "pytest --update-baselines" in judged.reason


@pytest.mark.parametrize(("old", "new"), [(WIDE, WIDE), ("", WIDE), (WIDE, ""), ("", "")])
def test_code_of_the_same_configuration_or_of_one_that_is_not_known_is_gated(old: str, new: str) -> None:
    worse = compare(tuned(new, static(spill_store_bytes=16)), tuned(old, static(code_hash="old")))
    assert worse.verdict is Verdict.WORSE


def test_equal_code_of_another_configuration_is_unchanged() -> None:
    assert compare(tuned(NARROW, STATIC), tuned(WIDE, STATIC)).verdict is Verdict.UNCHANGED


def test_another_compiler_outranks_another_configuration() -> None:
    old, new = tuned(WIDE, static(code_hash="old")), tuned(NARROW, STATIC)
    judged = compare_static(KEY, "sm_90", old, new, toolchains=("triton 3.5.1", "triton 3.6.0"))
    assert judged.verdict is Verdict.NOT_COMPARABLE
