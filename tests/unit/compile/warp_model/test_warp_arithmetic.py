"""The integer arithmetic of SASS, against Python's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.compile.machine_code.sass import Instruction
from pytest_gpuperf.compile.warp_model.decode import decode
from pytest_gpuperf.compile.warp_model.launch_inputs import special_registers
from pytest_gpuperf.compile.warp_model.registers import Registers

words = st.integers(0, 0xFFFFFFFF)


def machine(**registers: int) -> Registers:
    made = Registers(special_registers(None), {})
    for name, number in registers.items():
        run(made, ("MOV", f"{name}, {number:#x}"))
    return made


def run(on: Registers, *lines: tuple[str, str], predicate: str = "") -> Registers:
    for opcode, operands in lines:
        step = decode(Instruction(0, predicate, opcode, operands))
        on.execute(step, on.predicate(step.guard))
    return on


def number(on: Registers, register: str) -> int:
    bits = on.register(register).bits
    assert isinstance(bits, int)
    return bits


def signed(bits: int, of: int = 32) -> int:
    return bits - ((bits >> of - 1) << of)


def wide(low: int, high: int) -> int:
    return low | high << 32


RESULTS: dict[str, tuple[list[str], bool, Callable[..., int]]] = {
    # instructions, whether R7 is the upper word of the result in R6, and what that is: R2 to R5 are a, b, c and d
    "a difference borrows": (["IADD3 R6, P0, R2, -R4, RZ", "IMAD.X R7, R3, 0x1, ~R5, P0"], True,
                             lambda a, b, c, d, s: wide(a, b) - wide(c, d)),
    "a sum carries": (["IADD3 R6, P0, R2, R4, RZ", "IADD3.X R7, R3, R5, RZ, P0, !PT"], True,
                      lambda a, b, c, d, s: wide(a, b) + wide(c, d)),
    "a wide product is signed": (["IMAD.WIDE R6, R2, R3, R4"], True,
                                 lambda a, b, c, d, s: signed(a) * signed(b) + wide(c, d)),
    "unless it says otherwise": (["IMAD.WIDE.U32 R6, R2, R3, R4"], True, lambda a, b, c, d, s: a * b + wide(c, d)),
    "a scaled address": (["LEA R6, P0, R2, R4, {s:#x}", "LEA.HI.X R7, R2, R5, RZ, {s:#x}, P0"], True,
                         lambda a, b, c, d, s: (a << s) + wide(c, d)),
    "a shift keeps the sign": (["SHF.R.S32.HI R6, RZ, {s:#x}, R2"], False, lambda a, b, c, d, s: signed(a) >> s),
    "or drops it": (["SHF.R.U32.HI R6, RZ, {s:#x}, R2"], False, lambda a, b, c, d, s: a >> s),
    "to the left": (["SHF.L.U32 R6, R2, {s:#x}, RZ"], False, lambda a, b, c, d, s: a << s),
    "around": (["SHF.L.W.U32.HI R6, R2, {s:#x}, R2"], False, lambda a, b, c, d, s: a << s | a >> 32 - s),
    "and": (["LOP3.LUT R6, R2, R3, RZ, 0xc0, !PT"], False, lambda a, b, c, d, s: a & b),
    "exclusive or of three": (["LOP3.LUT R6, R2, R3, R4, 0x96, !PT"], False, lambda a, b, c, d, s: a ^ b ^ c),
    "a choice by a bit": (["LOP3.LUT P1, RZ, R2, 0x10, RZ, 0xc0, !PT", "SEL R6, R3, R4, P1"], False,
                          lambda a, b, c, d, s: b if a & 0x10 else c),
    "a comparison of two words": (["ISETP.GE.U32.AND P0, PT, R2, R4, PT", "ISETP.GE.AND.EX P0, PT, R3, R5, PT, P0",
                                   "SEL R6, 0x1, RZ, P0"], False,
                                  lambda a, b, c, d, s: signed(wide(a, b), 64) >= signed(wide(c, d), 64)),
    "in one instruction": (["ISETP.GE.S64.AND P1, PT, R2, R4, PT", "SEL R6, 0x1, RZ, P1"], False,
                           lambda a, b, c, d, s: signed(wide(a, b), 64) >= signed(wide(c, d), 64)),
    "of inequality": (["ISETP.NE.U32.AND P2, PT, R2, R4, PT", "ISETP.NE.AND.EX P2, PT, R3, R5, PT, P2",
                       "SEL R6, 0x1, RZ, P2"], False, lambda a, b, c, d, s: (a, b) != (c, d)),
    "a signed minimum": (["IMNMX R6, R2, R3, PT"], False, lambda a, b, c, d, s: min(signed(a), signed(b))),
    "a maximum": (["VIMNMX.U32 R6, R2, R3, !PT"], False, lambda a, b, c, d, s: max(a, b)),
    "an absolute value": (["IABS R6, R2"], False, lambda a, b, c, d, s: abs(signed(a))),
}  # fmt: skip


@pytest.mark.parametrize("case", RESULTS)
@settings(max_examples=30)
@given(words, words, words, words, st.integers(0, 31))
def test_results_are_those_of_python(case: str, a: int, b: int, c: int, d: int, s: int) -> None:
    lines, is_wide, expected = RESULTS[case]
    on = run(machine(R2=a, R3=b, R4=c, R5=d), *(tuple(line.format(s=s).split(" ", 1)) for line in lines))  # type: ignore[arg-type]
    found = wide(number(on, "R6"), number(on, "R7") if is_wide else 0)
    assert found == expected(a, b, c, d, s) & (1 << (64 if is_wide else 32)) - 1


@given(st.integers(0, 1 << 22), st.integers(1, 1 << 20))
def test_a_division_of_integers_is_followed_through_its_reciprocal(a: int, b: int) -> None:
    """The sequence that the compiler makes of a / b with a run-time b."""
    on = run(
        machine(R2=a, R0=b),
        ("I2F.U32.RP", "R3, R0"), ("MUFU.RCP", "R3, R3"), ("VIADD", "R4, R3, 0xffffffe"),
        ("F2I.FTZ.U32.TRUNC.NTZ", "R5, R4"), ("IMAD.MOV", "R6, RZ, RZ, -R5"), ("IMAD", "R7, R6, R0, RZ"),
        ("IMAD.MOV.U32", "R4, RZ, RZ, RZ"), ("IMAD.HI.U32", "R5, R5, R7, R4"), ("IMAD.HI.U32", "R8, R5, R2, RZ"),
        ("IMAD.MOV", "R9, RZ, RZ, -R8"), ("IMAD", "R9, R0, R9, R2"),
    )  # fmt: skip
    quotient, rest = number(on, "R8"), number(on, "R9")
    assert quotient * b + rest == a
    assert a // b - quotient in (0, 1, 2)  # the code corrects it with compares behind this


def test_a_result_under_a_predicate_is_merged_lane_by_lane() -> None:
    on = machine(R2=5)
    run(on, ("S2R", "R0, SR_TID.X"), ("ISETP.GE.AND", "P0, PT, R0, 0x10, PT"))
    run(on, ("MOV", "R2, 0x7"), predicate="P0")
    assert on.register("R2").bits[:32] == (5,) * 16 + (7,) * 16  # type: ignore[index]


@pytest.mark.parametrize(("opcode", "registers"), [
    ("HMMA.16816.F32.BF16", 4), ("HMMA.16816.F16", 2), ("LDSM.16.M88.4", 4), ("LDSM.16.MT88.2", 2), ("LDSM.16.M88", 1),
])  # fmt: skip
def test_results_take_the_registers_that_their_type_takes(opcode: str, registers: int) -> None:
    """An address next to a result of two registers stays known."""
    step = decode(Instruction(0, "", opcode, "R8, [R2]" if opcode.startswith("LDSM") else "R8, R16, R20, R8"))
    assert step.results == tuple(f"R{8 + number}" for number in range(registers))
