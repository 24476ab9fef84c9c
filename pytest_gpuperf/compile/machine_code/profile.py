"""From a cubin, and the assembler's log and PTX where they are at hand, to the static profile of every kernel in it.

Instructions are read by nvdisasm, but for machine code whose hash is on record: it would say the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.compile.compiler_texts import Spills, ptx_parameter_types, read_log
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
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile

Name = TypeVar("Name", bound=Hashable)

Recorded = Mapping[str, StaticProfile]
"""Profiles on record, by the hash of their code."""
NOTHING_RECORDED: Recorded = MappingProxyType({})
NOTHING_SPILLED: Mapping[str, Spills] = MappingProxyType({})


class Unread(NamedTuple):
    """A kernel in a cubin whose instructions are not read yet."""

    cubin: Cubin
    kernel: CubinKernel
    profile: StaticProfile


def analyse(made: Compiled, arch: str, recorded: Recorded = NOTHING_RECORDED) -> dict[str, KernelBinary]:
    """The kernels of a cubin by symbol, as ``described``; what is not ``recorded`` is disassembled, in one go.

    Of a cubin that was compiled for one instance of a template, that alone: nobody asks it for another kernel.
    Raises ``BadCubin``, ``ToolchainMissing``.
    """
    cubin, spills = read_cubin(made.cubin), read_log(made.log).spills
    codes = {
        symbol: Unread(cubin, kernel, profile_of(cubin, kernel, spills))
        for symbol, kernel in cubin.kernels.items()
        if made.lowered in (None, symbol)
    }
    return {
        symbol: described(
            codes[symbol].kernel, arch, profile, parameter_types(symbol) or ptx_parameter_types(made.ptx, symbol)
        )
        for symbol, profile in with_instructions(arch, codes, recorded).items()
    }


def described(
    kernel: CubinKernel, arch: str, profile: StaticProfile, types: Sequence[str | None] | None = None
) -> KernelBinary:
    """The kernel by its symbol, without its cubin and what made it; its parameters have ``types`` if all are known."""
    parameters = kernel.parameters
    if types is not None and len(types) == len(parameters):
        pairs = zip(parameters, types, strict=True)
        parameters = tuple(msgspec.structs.replace(one, type=name) for one, name in pairs)
    return KernelBinary(
        name=kernel.symbol, symbol=kernel.symbol, arch=arch, toolchain="", source_hash="", cubin=b"", profile=profile,
        parameters=parameters, max_threads_per_block=kernel.max_threads_per_block,
        required_block=kernel.required_block,
    )  # fmt: skip


def profile_of(cubin: Cubin, kernel: CubinKernel, spills: Mapping[str, Spills] = NOTHING_SPILLED) -> StaticProfile:
    """The profile without instructions; spilled bytes are known from the assembler's report alone.

    Raises ``BadCubin``.
    """
    told = [spills[name] for name in (kernel.symbol, *kernel.functions) if name in spills]
    return StaticProfile(
        registers=kernel.registers,
        stack_bytes=kernel.stack_bytes,
        spill_store_bytes=sum(one.stores for one in told) if told else None,
        spill_load_bytes=sum(one.loads for one in told) if told else None,
        shared_bytes=kernel.shared_bytes,
        constant_bytes=kernel.constant_bytes,
        barriers=kernel.barriers,
        code_bytes=kernel.code_bytes,
        instructions=0,
        opcodes={},
        code_hash=code_hash(cubin, kernel),
    )


def with_instructions(
    arch: str, codes: Mapping[Name, Unread], recorded: Recorded = NOTHING_RECORDED
) -> dict[Name, StaticProfile]:
    """Profiles with instructions, by any name: those on record, the others by one run of nvdisasm.

    Spills that no log told of are none where the code leaves local memory alone: else arrays may lie there too.
    Raises ``BadCubin``, ``ToolchainMissing``.
    """
    new = {name: one for name, one in codes.items() if one.profile.code_hash not in recorded}
    code = disassemble(arch, {name: text_of(one.cubin.elf, one.kernel.symbol).data for name, one in new.items()})
    found = {}
    for name, (cubin, kernel, profile) in codes.items():
        if name in new:
            executed = executable(cubin, kernel, code[name])
            count, opcodes = len(executed), histogram((line.opcode, line.operands) for line in executed)
        else:
            known = recorded[profile.code_hash]
            count, opcodes = known.instructions, known.opcodes
        stores, loads = profile.spill_store_bytes, profile.spill_load_bytes
        found[name] = msgspec.structs.replace(
            profile, instructions=count, opcodes=opcodes,
            spill_store_bytes=0 if stores is None and "local_store" not in opcodes else stores,
            spill_load_bytes=0 if loads is None and "local_load" not in opcodes else loads,
        )  # fmt: skip
    return found


def executable(cubin: Cubin, kernel: CubinKernel, instructions: tuple[Instruction, ...]) -> list[Instruction]:
    """Instructions of the kernel and the functions in its section, each without its padding."""
    text = text_of(cubin.elf, kernel.symbol)
    starts = {0} | {-(-one.value // INSTRUCTION_BYTES) for one in cubin.elf.symbols_in(text)}
    ends = [*sorted(starts), -(-text.size // INSTRUCTION_BYTES)]
    bodies = (without_padding(instructions[first:last]) for first, last in itertools.pairwise(ends))
    return list(itertools.chain.from_iterable(bodies))
