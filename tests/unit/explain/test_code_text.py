"""Machine code side by side."""

from __future__ import annotations

from pytest_gpuperf.compile.machine_code.sass import Instruction
from pytest_gpuperf.explain.code_text import CONTEXT, compare_instructions


def code(*lines: str) -> list[Instruction]:
    """Of ``@P0 OPCODE operands`` each."""
    found = []
    for place, line in enumerate(lines):
        predicate, rest = line[1:].split(" ", 1) if line.startswith("@") else ("", line)
        opcode, _, operands = rest.partition(" ")
        found.append(Instruction(16 * place, predicate, opcode, operands))
    return found


def marks(old: list[Instruction], new: list[Instruction]) -> list[tuple[str, str, str]]:
    return [(line.mark, line.before, line.after) for line in compare_instructions(old, new)]


def test_equal_code_has_no_difference():
    same = code("MOV R1, R2", "@P0 EXIT", "BRA 0x10")
    assert marks(same, same) == []


def test_an_inserted_instruction_stands_alone_on_its_side():
    old = code("MOV R1, R2", "EXIT")
    new = code("MOV R1, R2", "FADD R1, R1, R1", "EXIT")
    assert marks(old, new) == [
        ("same", "MOV R1, R2", "MOV R1, R2"),
        ("other", "", "FADD R1, R1, R1"),
        ("same", "EXIT", "EXIT"),
    ]


def test_other_registers_of_the_same_opcode_are_no_other_instruction():
    assert marks(code("FADD R1, R2, R3"), code("FADD R4, R2, R3")) == [
        ("operands", "FADD R1, R2, R3", "FADD R4, R2, R3")
    ]


def test_a_predicate_is_part_of_an_instruction():
    assert marks(code("FADD R1, R2, R3"), code("@!P0 FADD R1, R2, R3"))[0][0] == "other"


def test_a_jump_is_the_same_wherever_its_target_has_moved():
    old = code("NOP", "@P0 BRA 0x30")
    new = code("NOP", "FADD R1, R1, R1", "@P0 BRA 0x40")
    assert marks(old, new)[-1] == ("same", "@P0 BRA 0x30", "@P0 BRA 0x40")


def test_equal_stretches_are_left_out_and_counted():
    equal = [f"MOV R{one}, R1" for one in range(20)]
    lines = compare_instructions(code(*equal, "EXIT"), code(*equal, "FADD R1, R1, R1", "EXIT", *equal))
    assert (lines[0].mark, lines[0].lines) == ("left out", 20 - CONTEXT)
    assert sum(line.mark != "left out" for line in lines) == CONTEXT + 1 + 1 + 20
    assert sum(line.mark == "other" for line in lines) == 1 + 20
