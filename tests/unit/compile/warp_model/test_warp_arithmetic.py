"""The integer arithmetic of SASS, against Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.compile.machine_code.sass import Instruction
from pytest_gpuperf.compile.warp_model.decode import decode
from pytest_gpuperf.compile.warp_model.launch_inputs import special_registers
from pytest_gpuperf.compile.warp_model.registers import Machine

WORD = 0xFFFFFFFF
words = st.integers(0, WORD)


def machine(**registers: int) -> Machine:
    made = Machine(special_registers(None), {})
    for name, number in registers.items():
        run(made, ("MOV", f"{name}, {number:#x}"))
    return made


def run(on: Machine, *lines: tuple[str, str], predicate: str = "") -> Machine:
    for opcode, operands in lines:
        step = decode(Instruction(0, predicate, opcode, operands))
        on.execute(step, on.predicate(step.guard))
    return on


def number(on: Machine, register: str) -> int:
    bits = on.register(register).bits
    assert isinstance(bits, int)
    return bits


def signed(bits: int) -> int:
    return bits - ((bits >> 31) << 32)


def signed64(bits: int) -> int:
    return bits - ((bits >> 63) << 64)


@given(words, words, words, words)
def test_64_bit_sums_carry_and_differences_borrow(a: int, b: int, high_a: int, high_b: int) -> None:
    one, other, mask = a | high_a << 32, b | high_b << 32, (1 << 64) - 1
    on = run(
        machine(R2=a, R3=high_a, R4=b, R5=high_b),
        ("IADD3", "R6, P0, R2, -R4, RZ"), ("IMAD.X", "R7, R3, 0x1, ~R5, P0"),
        ("IADD3", "R8, P0, R2, R4, RZ"), ("IADD3.X", "R9, R3, R5, RZ, P0, !PT"),
    )  # fmt: skip
    assert number(on, "R6") | number(on, "R7") << 32 == one - other & mask
    assert number(on, "R8") | number(on, "R9") << 32 == one + other & mask


@given(words, words, words)
def test_wide_multiply_add_is_signed_unless_it_says_otherwise(a: int, b: int, c: int) -> None:
    on = run(machine(R2=a, R3=b, R4=c, R5=0), ("IMAD.WIDE", "R6, R2, R3, R4"), ("IMAD.WIDE.U32", "R8, R2, R3, R4"))
    assert number(on, "R6") | number(on, "R7") << 32 == (signed(a) * signed(b) + c) & (1 << 64) - 1
    assert number(on, "R8") | number(on, "R9") << 32 == (a * b + c) & (1 << 64) - 1


@given(words, st.integers(0, 31), words)
def test_scaled_addresses_come_out_in_both_words(index: int, shift: int, base: int) -> None:
    on = run(
        machine(R2=index, R3=0, R4=base, R5=1),
        ("LEA", f"R6, P0, R2, R4, {shift:#x}"), ("LEA.HI.X", f"R7, R2, R5, R3, {shift:#x}, P0"),
    )  # fmt: skip
    expected = ((index << shift) + (base | 1 << 32)) & (1 << 64) - 1
    assert number(on, "R6") | number(on, "R7") << 32 == expected


@given(words, st.integers(0, 31))
def test_shifts_keep_the_sign_where_they_should(bits: int, distance: int) -> None:
    on = run(
        machine(R2=bits),
        ("SHF.R.S32.HI", f"R3, RZ, {distance:#x}, R2"), ("SHF.R.U32.HI", f"R4, RZ, {distance:#x}, R2"),
        ("SHF.L.U32", f"R5, R2, {distance:#x}, RZ"), ("SHF.L.W.U32.HI", f"R6, R2, {distance:#x}, R2"),
    )  # fmt: skip
    assert number(on, "R3") == signed(bits) >> distance & WORD
    assert number(on, "R4") == bits >> distance
    assert number(on, "R5") == bits << distance & WORD
    assert number(on, "R6") == (bits << distance | bits >> 32 - distance) & WORD


@given(words, words, words)
def test_any_function_of_three_bits(a: int, b: int, c: int) -> None:
    on = run(
        machine(R2=a, R3=b, R4=c),
        ("LOP3.LUT", "R5, R2, R3, RZ, 0xc0, !PT"), ("LOP3.LUT", "R6, R2, R3, R4, 0x96, !PT"),
        ("LOP3.LUT", "P1, RZ, R2, 0x10, RZ, 0xc0, !PT"), ("SEL", "R7, R3, R4, P1"),
    )  # fmt: skip
    assert number(on, "R5") == a & b
    assert number(on, "R6") == a ^ b ^ c
    assert number(on, "R7") == (b if a & 0x10 else c)


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_comparisons_of_two_words_agree_with_those_of_one_instruction(a: int, b: int) -> None:
    on = run(
        machine(R2=a & WORD, R3=a >> 32, R4=b & WORD, R5=b >> 32),
        ("ISETP.GE.U32.AND", "P0, PT, R2, R4, PT"), ("ISETP.GE.AND.EX", "P0, PT, R3, R5, PT, P0"),
        ("ISETP.GE.S64.AND", "P1, PT, R2, R4, PT"), ("ISETP.NE.U32.AND", "P2, PT, R2, R4, PT"),
        ("ISETP.NE.AND.EX", "P2, PT, R3, R5, PT, P2"),
        ("SEL", "R6, 0x1, RZ, P0"), ("SEL", "R7, 0x1, RZ, P1"), ("SEL", "R8, 0x1, RZ, P2"),
    )  # fmt: skip
    assert number(on, "R6") == number(on, "R7") == int(signed64(a) >= signed64(b))
    assert number(on, "R8") == int(a != b)


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


@given(words, words)
def test_minimum_maximum_and_absolute_value(a: int, b: int) -> None:
    on = run(
        machine(R2=a, R3=b),
        ("IMNMX", "R4, R2, R3, PT"), ("VIMNMX.U32", "R5, R2, R3, !PT"), ("IABS", "R6, R2"),
    )  # fmt: skip
    assert (signed(number(on, "R4")), number(on, "R5")) == (min(signed(a), signed(b)), max(a, b))
    assert number(on, "R6") == abs(signed(a)) & WORD


def test_a_result_under_a_predicate_is_merged_lane_by_lane() -> None:
    on = machine(R2=5)
    run(on, ("S2R", "R0, SR_TID.X"), ("ISETP.GE.AND", "P0, PT, R0, 0x10, PT"))
    run(on, ("MOV", "R2, 0x7"), predicate="P0")
    assert on.register("R2").bits[:32] == (5,) * 16 + (7,) * 16  # type: ignore[index]
