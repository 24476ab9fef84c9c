"""From a cubin, and the assembler's log and PTX where they are at hand, to the static profile of every kernel in it.

Instructions are read by nvdisasm, but for machine code whose hash is on record: it would say the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.compile.compiler_texts import PtxasUsage, Report, ptx_parameter_types, read_log
from pytest_gpuperf.compile.machine_code.code_hash import code_hash
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.sass import (
    INSTRUCTION_BYTES,
    Instruction,
    disassemble,
    histogram,
    without_padding,
)
from pytest_gpuperf.compile.machine_code.symbols import parameter_types
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.model.evidence import Parameter, Record, StaticProfile

Name = TypeVar("Name", bound=Hashable)

Recorded = Mapping[str, StaticProfile]
"""Profiles on record, by the hash of their code."""
NOTHING_RECORDED: Recorded = MappingProxyType({})


class KernelAnalysis(Record, frozen=True):
    """Evidence of one kernel besides its machine code."""

    profile: StaticProfile
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None = None
    required_block: tuple[int, int, int] | None = None


class Unread(NamedTuple):
    """A kernel in a cubin whose instructions are not read yet."""

    cubin: Cubin
    symbol: str
    profile: StaticProfile


def analyse(made: Compiled, arch: str, recorded: Recorded = NOTHING_RECORDED) -> dict[str, KernelAnalysis]:
    """Analyses of a cubin's kernels by symbol; what is not ``recorded`` is disassembled, in one go.

    Of a cubin that was compiled for one instance of a template, that alone: nobody asks it for another kernel.
    Raises ``BadCubin``, ``ToolchainMissing``.
    """
    cubin, report = read_cubin(made.cubin), read_log(made.log)
    wanted = {symbol: kernel for symbol, kernel in cubin.kernels.items() if made.lowered in (None, symbol)}
    codes = {symbol: Unread(cubin, symbol, profile_of(cubin, kernel, report)) for symbol, kernel in wanted.items()}
    return {
        symbol: analysis_of(wanted[symbol], profile, parameter_types(symbol) or ptx_parameter_types(made.ptx, symbol))
        for symbol, profile in with_instructions(arch, codes, recorded).items()
    }


def analysis_of(
    kernel: CubinKernel, profile: StaticProfile, types: Sequence[str | None] | None = None
) -> KernelAnalysis:
    """The analysis of a kernel with this ``profile``; its parameters have ``types`` where these are all known."""
    parameters = kernel.parameters
    if types is not None and len(types) == len(parameters):
        pairs = zip(parameters, types, strict=True)
        parameters = tuple(msgspec.structs.replace(one, type=name) for one, name in pairs)
    return KernelAnalysis(profile, parameters, kernel.max_threads_per_block, kernel.required_block)


def profile_of(cubin: Cubin, kernel: CubinKernel, report: Report | None = None) -> StaticProfile:
    """The profile without instructions; spilled bytes are known from the assembler's report alone.

    Raises ``BadCubin``.
    """
    report = report or Report({}, {})
    of_cubin = PtxasUsage(kernel.registers, kernel.barriers, kernel.shared_bytes, kernel.stack_bytes)
    usage = report.usage.get(kernel.symbol, of_cubin)
    frames = [report.frames[name] for name in (kernel.symbol, *kernel.functions) if name in report.frames]
    own_stack = frames[0].stack_bytes if frames else kernel.stack_bytes
    return StaticProfile(
        registers=usage.registers,
        stack_bytes=own_stack if usage.cumulative_stack_bytes is None else usage.cumulative_stack_bytes,
        spill_store_bytes=sum(frame.spill_store_bytes for frame in frames) if frames else None,
        spill_load_bytes=sum(frame.spill_load_bytes for frame in frames) if frames else None,
        shared_bytes=usage.shared_bytes,
        constant_bytes=kernel.constant_bytes,
        barriers=usage.barriers,
        code_bytes=kernel.code_bytes,
        instructions=0,
        opcodes={},
        code_hash=code_hash(cubin, kernel),
    )


def with_instructions(
    arch: str, codes: Mapping[Name, Unread], recorded: Recorded = NOTHING_RECORDED
) -> dict[Name, StaticProfile]:
    """Profiles with instructions, by any name: those on record, the others by one run of nvdisasm.

    Raises ``BadCubin``, ``ToolchainMissing``.
    """
    new = {name: one for name, one in codes.items() if one.profile.code_hash not in recorded}
    code = disassemble(arch, {name: text_of(one.cubin.elf, one.symbol).data for name, one in new.items()})
    found = {}
    for name, one in codes.items():
        if name in new:
            executed = executable(one.cubin, one.cubin.kernels[one.symbol], code[name])
            count, opcodes = len(executed), histogram((line.opcode, line.operands) for line in executed)
        else:
            known = recorded[one.profile.code_hash]
            count, opcodes = known.instructions, known.opcodes
        found[name] = _with_mix(one.profile, count, opcodes)
    return found


def _with_mix(profile: StaticProfile, instructions: int, opcodes: dict[str, int]) -> StaticProfile:
    """Spills that no log told of are none where the code leaves local memory alone: else arrays may lie there too."""
    stores, loads = profile.spill_store_bytes, profile.spill_load_bytes
    return msgspec.structs.replace(
        profile,
        spill_store_bytes=0 if stores is None and "local_store" not in opcodes else stores,
        spill_load_bytes=0 if loads is None and "local_load" not in opcodes else loads,
        instructions=instructions,
        opcodes=opcodes,
    )


def executable(cubin: Cubin, kernel: CubinKernel, instructions: tuple[Instruction, ...]) -> list[Instruction]:
    """Instructions of the kernel and the functions in its section, each without its padding."""
    text = text_of(cubin.elf, kernel.symbol)
    starts = {0} | {-(-one.value // INSTRUCTION_BYTES) for one in cubin.elf.symbols_in(text)}
    ends = [*sorted(starts), -(-text.size // INSTRUCTION_BYTES)]
    bodies = (without_padding(instructions[first:last]) for first, last in itertools.pairwise(ends))
    return list(itertools.chain.from_iterable(bodies))
