"""A warp's way: loops, splits, exits and calls, in machine code written by hand."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES, Instruction
from pytest_gpuperf.compile.warp_model import walk
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.compile.warp_model.walk import DecodedKernel, dry_run
from pytest_gpuperf.model.evidence import Parameter
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

BASE = 0x210
"""Of the parameters on sm_90."""
POINTER, NUMBER = Parameter(offset=0, size=8), Parameter(offset=8, size=4)


def code(*lines: str) -> list[Instruction]:
    """``@!P0 BRA 2``: jumps name the line that they lead to."""
    made = []
    for place, line in enumerate(lines):
        predicate = ""
        if line.startswith("@"):
            predicate, _, line = line[1:].partition(" ")
        opcode, _, operands = line.partition(" ")
        if opcode.split(".")[0] in ("BRA", "CALL"):
            head, _, target = operands.rpartition(" ")
            operands = f"{head} {int(target) * INSTRUCTION_BYTES:#x}".strip()
        made.append(Instruction(place * INSTRUCTION_BYTES, predicate, opcode, operands))
    return made


def walked(*lines: str, parameters: tuple[Parameter, ...] = (POINTER, NUMBER)) -> WarpEstimate:
    found = launched(*lines, parameters=parameters)
    assert found is not None
    return found


def launched(
    *lines: str, launch: KnownLaunch | None = None, parameters: tuple[Parameter, ...] = (POINTER, NUMBER)
) -> WarpEstimate | None:
    return dry_run(DecodedKernel(code(*lines), "sm_90", parameters, BASE), launch)


def accesses(run: WarpEstimate, op: str) -> list[Access]:
    return [access for access in run.accesses if access.op == op]


ADD = "FADD R1, R1, R1"
BOUND = "LDC R9, c[0x0][0x218]"
"""An argument."""
UNROLLED = [
    ("MOV R0, RZ", BOUND, *[ADD] * factor, f"IADD3 R0, R0, {factor:#x}, RZ", "ISETP.GE.AND P0, PT, R0, R9, PT",
     "@!P0 BRA 2", "EXIT")
    for factor in (1, 4, 128)
]  # fmt: skip
TILES = [
    ("MOV R0, RZ", BOUND, "MOV R2, RZ", *[ADD] * inner, f"IADD3 R2, R2, {inner:#x}, RZ",
     "ISETP.NE.AND P1, PT, R2, 0x100, PT", "@P1 BRA 3", "IADD3 R0, R0, 0x100, RZ", "ISETP.GE.AND P0, PT, R0, R9, PT",
     "@!P0 BRA 2", "EXIT")
    for inner in (1, 16, 128)
]  # fmt: skip
TREES = [
    (f"MOV R0, {start}", ADD, shift, f"ISETP.{compared}, PT", "@P0 BRA 1", "EXIT")
    for start, shift, compared in (
        ("0x1", "IMAD.SHL.U32 R0, R0, 0x2, RZ", "LT.AND P0, PT, R0, 0x20"),
        ("0x80", "SHF.R.U32.HI R0, RZ, 0x1, R0", "NE.AND P0, PT, R0, RZ"),
        ("0x80", "SHF.R.U32.HI R0, RZ, 0x1, R0", "NE.AND P0, PT, RZ, R0"),
    )
]
ROUNDS = {
    "constant bounds": (100, [("MOV R0, RZ", ADD, "IADD3 R0, R0, 0x1, RZ", "ISETP.NE.AND P0, PT, R0, 0x64, PT",
                               "@P0 BRA 1", "EXIT")]),
    "a bound through a predicate that is handed on, as sm_80 does with a uniform one": (
        100, [("UMOV UR4, URZ", ADD, "UIADD3 UR4, UR4, 0x1, URZ", "UISETP.GE.U32.AND UP0, UPT, UR4, 0x64, UPT",
               "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0", "@!P0 BRA 1", "EXIT")]),
    "however far it is unrolled": (256, UNROLLED),
    "however far the walk through a tile is unrolled": (256, TILES),
    "moves on by the grid": (
        4, [("S2R R0, SR_TID.X", BOUND, "ULDC UR4, c[0x0][0x0]", "ULDC UR5, c[0x0][0xc]", "UIMAD UR4, UR4, UR5, URZ",
             ADD, "IADD3 R0, R0, UR4, RZ", "ISETP.GE.AND P0, PT, R0, R9, PT", "@!P0 BRA 5", "EXIT")]),
    "doubles": (5, TREES[:1]),
    "halves": (8, TREES[1:]),
    "data end it": (
        16, [("LDG.E R0, desc[UR4][R2.64]", "LDG.E R9, desc[UR4][R2.64+0x4]", ADD, "IADD3 R0, R0, 0x1, RZ",
              "ISETP.LT.AND P0, PT, R0, R9, PT", "@P0 BRA 2", "EXIT")]),
    "loops in loops": (
        80, [("MOV R0, RZ", "MOV R2, RZ", ADD, "IADD3 R2, R2, 0x1, RZ", "ISETP.NE.AND P1, PT, R2, 0x8, PT",
              "@P1 BRA 2", "IADD3 R0, R0, 0x1, RZ", "ISETP.NE.AND P0, PT, R0, 0xa, PT", "@P0 BRA 1", "EXIT")]),
    "around one that shares its head": (
        100, [("MOV R0, RZ", "LDS R3, [R4]", "ISETP.NE.AND P1, PT, R3, RZ, PT", "@P1 BRA 1", ADD,
               "IADD3 R0, R0, 0x1, RZ", "ISETP.NE.AND P0, PT, R0, 0x64, PT", "@P0 BRA 1", "EXIT")]),
    "a counter that was spilled": (
        100, [("MOV R9, 0x8", "MOV R0, RZ", "STL [R9], R0", "LDL R0, [R9]", ADD, "IADD3 R0, R0, 0x1, RZ",
               "STL [R9], R0", "ISETP.NE.AND P0, PT, R0, 0x64, PT", "@P0 BRA 3", "EXIT")]),
}  # fmt: skip


@pytest.mark.parametrize(("rounds", "kernels"), ROUNDS.values(), ids=ROUNDS)
def test_a_loop_has_its_rounds(rounds: int, kernels: list[tuple[str, ...]]) -> None:
    assert [walked(*lines).executed["fp32"] for lines in kernels] == [rounds] * len(kernels)


def test_a_branch_by_lane_is_walked_on_both_sides_by_some_lanes_each() -> None:
    run = walked("S2R R0, SR_TID.X", "LOP3.LUT R2, R0, 0x1, RZ, 0xc0, !PT", "ISETP.NE.AND P0, PT, R2, RZ, PT",
                 "@P0 BRA 7", *["FADD R1, R1, R1"] * 2, "BRA 8", "FMUL R1, R1, R1", "EXIT")  # fmt: skip
    assert run.executed["fp32"] == 3
    assert run.lanes == pytest.approx((5 * 32 + 4 * 16) / 9, abs=0.01)


def test_lanes_that_leave_for_good_take_no_part_any_more() -> None:
    run = walked("S2R R0, SR_TID.X", "LOP3.LUT P0, RZ, R0, 0x1f, RZ, 0xc0, !PT", "@P0 EXIT", "LDC.64 R2, c[0x0][0x210]",
                 "STG.E desc[UR4][R2.64], R5", "EXIT")  # fmt: skip
    (store,) = accesses(run, "global_store")
    assert (store.lanes, store.sectors) == (1, 1)


def test_the_slow_path_of_a_division_is_counted_and_not_walked() -> None:
    run = walked("S2R R0, SR_TID.X", "LDC R9, c[0x0][0x218]", "ISETP.GE.AND P0, PT, R0, R9, PT", "@P0 EXIT",
                 "FCHK P0, R0, R1", "@!P0 BRA 8", "MOV R4, 0x80", "CALL.REL.NOINC 10", "FADD R1, R1, R1", "EXIT",
                 *["FADD R2, R2, R2"] * 20, "RET.REL.NODEC R4 0x0")  # fmt: skip
    assert run.divisions == 1  # its predicate is not taken for the bound that it held before
    assert run.executed["fp32"] < 10


def test_a_function_that_is_always_called_is_walked() -> None:
    run = walked("MOV R4, 0x20", "CALL.REL.NOINC 4", "FADD R1, R1, R1", "EXIT", *["FMUL R2, R2, R2"] * 5,
                 "RET.REL.NODEC R4 0x0")  # fmt: skip
    assert run.executed["fp32"] == 6
    assert run.divisions == 0


def test_too_long_a_way_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_VISITS", 10)
    assert launched(*["FADD R1, R1, R1"] * 20, "EXIT") is None


OPCODES = ("BRA", "CALL.REL.NOINC", "RET.REL.NODEC", "EXIT", "ISETP.GE.AND", "IADD3", "IADD3.X", "IMAD.WIDE", "LEA",
           "LEA.HI.X", "SHF.R.S32.HI", "LOP3.LUT", "PLOP3.LUT", "SEL", "PRMT", "MOV", "LDG.E.128", "STS.64", "LDL",
           "HFMA2", "I2F.U32.RP", "MUFU.RCP", "F2I.U32.TRUNC", "S2R", "LDC.64", "HMMA.16816.F32", "IABS", "IMNMX",
           "BRA.U", "BSSY", "UIADD3.64", "DADD", "SHFL.DOWN", "VOTE.ANY", "NOPE.WHAT")  # fmt: skip
OPERANDS = ("R0", "R1", "R2", "RZ", "-R3", "~R4", "|R5|", "UR4", "URZ", "P0", "!P1", "PT", "UP0", "0x10", "-0x1", "0x0",
            "0x20", "1.5", "+INF", "c[0x0][0x210]", "c[0x0][R3+0x4]", "[R2.64+0x10]", "desc[UR4][R2.64]", "[R1.X4]",
            "SR_TID.X", "SRZ", "R254", "[UR5]", "cx[UR4][0x8]", "")  # fmt: skip
lines_of_code = st.lists(
    st.tuples(st.sampled_from(("", "P0", "!P1", "UP0")), st.sampled_from(OPCODES),
              st.lists(st.sampled_from(OPERANDS), max_size=6)), min_size=1, max_size=40)  # fmt: skip


@settings(max_examples=200)
@given(lines_of_code)
def test_no_machine_code_breaks_it(lines: list[tuple[str, str, list[str]]]) -> None:
    instructions = [
        Instruction(place * INSTRUCTION_BYTES, predicate, opcode, ", ".join(operands))
        for place, (predicate, opcode, operands) in enumerate(lines)
    ]
    with mock.patch.object(walk, "MOST_VISITS", 2000):
        found = dry_run(DecodedKernel(instructions, "sm_90", (POINTER, NUMBER), BASE))
    assert found is None or all(count >= 0 for count in found.executed.values())


LAUNCH = KnownLaunch((64, 1, 1), (64, 1, 1), (None, 100), (8, 4))
COUNTING = ("MOV R0, RZ", "FADD R1, R1, R1", "IADD3 R0, R0, 0x1, RZ", "ISETP.NE.AND P0, PT, R0, c[0x0][0x218], PT",
            "@P0 BRA 1", "STG.E [R2], R1", "EXIT")  # fmt: skip


def test_a_known_launch_tells_how_often_a_loop_goes_round() -> None:
    assert walked(*COUNTING).executed["fp32"] == 256
    found = launched(*COUNTING, launch=LAUNCH)
    assert found is not None
    assert (found.executed["fp32"], found.launched) == (100, True)


def test_a_launch_whose_block_writes_nothing_tells_nothing() -> None:
    leaving = ("S2R R0, SR_CTAID.X", "ISETP.NE.AND P0, PT, R0, RZ, PT", "@P0 EXIT", "STG.E [R2], R1", "EXIT")
    assert launched(*leaving, launch=LAUNCH) is None
    assert walked(*leaving).executed["global_store"] == 1


def test_what_an_unrolled_loop_leaves_over_is_nothing() -> None:
    run = walked("LDC R9, c[0x0][0x218]", "LOP3.LUT R2, R9, 0x3, RZ, 0xc0, !PT",
                 "MUFU.RCP R1, R1", "IADD3 R2, R2, -0x1, RZ", "ISETP.NE.AND P0, PT, R2, RZ, PT", "@P0 BRA 2",
                 "MOV R0, RZ", *["FADD R1, R1, R1"] * 4, "IADD3 R0, R0, 0x4, RZ", "ISETP.LT.AND P0, PT, R0, R9, PT",
                 "@P0 BRA 7", "EXIT")  # fmt: skip
    assert "mufu" not in run.executed
    assert run.executed["fp32"] == 256


def test_warps_that_go_other_ways_are_walked_too() -> None:
    lines = ("S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x10, PT", "@P0 BRA 4", "FADD R1, R1, R1",
             "STG.E [R2], R1", "EXIT")  # fmt: skip
    found = launched(*lines, launch=LAUNCH._replace(block=(1024, 1, 1)))
    assert found is not None
    assert found.executed["fp32"] == pytest.approx(1 / 32, rel=0.01)
    assert found.executed["global_store"] == 1
