"""The disassembly: classes of opcodes, targets of jumps, padding."""

from __future__ import annotations

from pytest_gpuperf.compile.machine_code.sass import (
    CLASSES,
    Instruction,
    class_of,
    histogram,
    target_of,
    without_padding,
)


def line(address: int, opcode: str, operands: str = "", predicate: str = "", start: int = 0) -> Instruction:
    return Instruction(address, predicate, opcode, operands, start)


def test_padding_is_the_tail_that_cannot_run() -> None:
    body = (line(0, "EXIT"), line(16, "BRA", "0x110", start=0x100), line(32, "NOP"), line(48, "NOP"))
    assert (without_padding(body), without_padding(body[:1]), without_padding(())) == (body[:1], body[:1], ())
    for jump in (line(16, "BRA", "0x0"), line(16, "BRA", "0x10", "P0"), line(16, "RET.REL.NODEC", "R4 0x10")):
        assert without_padding((line(0, "NOP"), jump, line(32, "NOP"))) == (line(0, "NOP"), jump)


def test_targets_count_from_the_start_of_the_section() -> None:
    assert target_of(line(16, "CALL.REL.NOINC", "0x190", start=0x100)) == 0x90
    assert target_of(line(16, "RET.REL.NODEC", "R20 0x100", start=0x100)) == 0
    assert target_of(line(16, "BRX", "R4 -0x60")) is target_of(line(16, "EXIT")) is None


def test_each_opcode_has_one_class() -> None:
    for opcode, operands, name in (
        ("LDG.E.128.CONSTANT", "R4, [R2.64]", "global_load"), ("IMAD", "R1, R2, R3, R4", "integer"),
        ("IMAD.MOV.U32", "R1, RZ, RZ, R4", "move"), ("HFMA2.MMA", "R5, -RZ, RZ, 0, 0", "move"),
        ("HFMA2.MMA", "R5, R6, R7, R8", "fp16"), ("HMMA.16816.F32", "", "tensor"), ("NEWOP.X", "", "other"),
    ):  # fmt: skip
        assert class_of(opcode, operands) == name
    opcodes = [one for row in CLASSES.values() for one in row.split()]
    assert len(opcodes) == len(set(opcodes))
    assert histogram([("STG.E", ""), ("FADD", ""), ("FFMA", "")]) == {"fp32": 2, "global_store": 1}
