"""Machine code of red workloads beside that of their baselines, for reports that are read without either cubin."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.compile_errors import BadCubin, ToolchainMissing
from pytest_gpuperf.compile.machine_code.cubin import read_cubin, text_of
from pytest_gpuperf.compile.machine_code.sass import (
    INSTRUCTION_BYTES,
    Instruction,
    disassemble,
    target_of,
    without_padding,
)  # fmt: skip
from pytest_gpuperf.explain.comparison import Estimates, WorkloadComparison
from pytest_gpuperf.model.advice import CodeDifference, CodeLine, Mark
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import TestEvidence, unpacked

MOST_KERNELS = 12
MOST_LINES = 240
"""Of one difference."""
LONGEST = 20_000
"""Instructions of a kernel that is compared line by line."""
CONTEXT = 3
"""Equal lines around a change."""


def code_differences(store: BaselineStore, tests: Sequence[TestEvidence]) -> tuple[CodeDifference, ...]:
    """Of each pair of machine codes that failed the gate, in the order of the tests; without a disassembler, none.

    A pair is shown once, however many workloads launch it.
    """
    pairs = list(itertools.islice(_pairs(store, tests), MOST_KERNELS))
    codes: dict[tuple[str, bytes], tuple[Instruction, ...]] = {}
    for arch in {arch for _, _, arch, _ in pairs}:
        texts = {text: text for _, _, own, both in pairs if own == arch for text in both}
        try:
            found = disassemble(arch, texts)
        except ToolchainMissing:
            return ()
        codes |= {(arch, text): without_padding(code) for text, code in found.items()}
    differences = []
    for key, kernel, arch, both in pairs:
        old, new = (codes[arch, text] for text in both)
        lines = compare_instructions(old, new)
        differences.append(CodeDifference(
            key=key, kernel=kernel, arch=arch, instructions=(len(old), len(new)),
            lines=tuple(lines[:MOST_LINES]), more=max(0, len(lines) - MOST_LINES),
        ))  # fmt: skip
    return tuple(differences)


def _pairs(store: BaselineStore, tests: Sequence[TestEvidence]) -> Iterator[tuple[Key, str, str, tuple[bytes, bytes]]]:
    """Workload, kernel, architecture that its causes are told of, and bare instructions of what failed the gate."""
    estimates = Estimates(store, unpacked(tests), None)
    seen: set[tuple[str, bytes, bytes]] = set()
    for test in tests:
        for work in test.workloads:
            if not any(judgement.verdict.is_regression for judgement in work.judgements):
                continue
            comparison = WorkloadComparison(store, estimates, work, work.toolchain, test.workloads, test.device)
            _, old, new, _ = comparison.compared(comparison.arch)
            codes = comparison.arch, _code(estimates, old), _code(estimates, new)
            if new is not None and all(codes) and codes[1] != codes[2] and codes not in seen:
                seen.add(codes)
                yield work.key, new.kernel, codes[0], codes[1:]


def _code(estimates: Estimates, record: StaticRecord | None) -> bytes:
    """Empty where the cubin is not at hand, cannot be read, or is too long to be compared."""
    try:
        elf = read_cubin(estimates.cubin(record)).elf
        code = text_of(elf, record.symbol or record.kernel).data if record is not None else b""
    except BadCubin:
        return b""
    return code if len(code) <= LONGEST * INSTRUCTION_BYTES else b""


def compare_instructions(old: Sequence[Instruction], new: Sequence[Instruction]) -> list[CodeLine]:
    """Lines side by side, matched by opcode; equal ones are left out but for ``CONTEXT`` around each change.

    The target of a jump moves with every instruction between, so jumps are equal whatever their targets.
    """
    matcher = difflib.SequenceMatcher(
        None, [_opcode(one) for one in old], [_opcode(one) for one in new], autojunk=False
    )
    lines: list[CodeLine] = []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        pairs = itertools.zip_longest(old[i:i_end], new[j:j_end])
        lines += [_line(before, after, matched=tag == "equal") for before, after in pairs]
    return _shortened(lines)


def _opcode(instruction: Instruction) -> str:
    return f"{bool(instruction.predicate)} {instruction.opcode}"


def _line(before: Instruction | None, after: Instruction | None, *, matched: bool) -> CodeLine:
    mark: Mark = "other"
    if matched and before is not None and after is not None:
        mark = "same" if _text(before, jump=False) == _text(after, jump=False) else "operands"
    return CodeLine(mark, _text(before), _text(after))


def _text(instruction: Instruction | None, *, jump: bool = True) -> str:
    """``@!P0 LDG.E R2, desc[UR4][R2.64]``"""
    if instruction is None:
        return ""
    operands = instruction.operands
    if not jump and target_of(instruction) is not None and instruction.opcode.startswith(("BRA", "CALL", "BSSY")):
        operands = re.sub(r"0x[0-9a-f]+\s*$", "", operands)
    predicate = f"@{instruction.predicate} " if instruction.predicate else ""
    return f"{predicate}{instruction.opcode} {operands}".rstrip()


def _shortened(lines: Sequence[CodeLine]) -> list[CodeLine]:
    changed = [place for place, line in enumerate(lines) if line.mark != "same"]
    shown = {place + step for place in changed for step in range(-CONTEXT, CONTEXT + 1)}
    kept: list[CodeLine] = []
    for is_shown, stretch in itertools.groupby(range(len(lines)), key=shown.__contains__):
        found = [lines[place] for place in stretch]
        kept += found if is_shown else [CodeLine("left out", lines=len(found))]
    return kept if changed else []
