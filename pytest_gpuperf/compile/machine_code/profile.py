"""From a cubin, and the assembler's log and PTX where they are at hand, to the static profile of every kernel in it.

The machine code of a cubin that is on record, byte for byte, is not read again: nvdisasm would say the same.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from pytest_gpuperf.compile.machine_code.code_hash import hash_code
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.opcodes import histogram
from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES, Instruction, disassemble, without_padding
from pytest_gpuperf.compile.machine_code.symbols import parameter_types
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.ptx_text import ptx_parameter_types, unreachable_symbols
from pytest_gpuperf.compile.ptxas_log import Frame, PtxasUsage, Report, read_log
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import Parameter, StaticProfile


class KernelAnalysis(Record, frozen=True):
    """Evidence of one kernel besides its machine code."""

    profile: StaticProfile
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None = None
    recorded: bool = False
    """The profile is that on record of the same cubin: true as long as the record says so."""
    required_block: tuple[int, int, int] | None = None


Recorded = Mapping[tuple[str, str], StaticProfile]
"""Profiles on record, by the SHA-256 of the cubin and the kernel's symbol in it."""


def analyse(
    several: Sequence[Compiled], arch: str, recorded: Recorded | None = None
) -> list[dict[str, KernelAnalysis]]:
    """Analyses of each cubin by symbol; what is not ``recorded`` is disassembled, in one go.

    Of a cubin that was compiled for one instance of a template, that alone: nobody asks it for another kernel.
    Raises ``BadCubin``, ``ToolchainMissing``.
    """
    contents = [read_cubin(made.cubin) for made in several]
    reports = [read_log(made.log) for made in several]
    kernels = [
        (number, kernel)
        for number, (made, content) in enumerate(zip(several, contents, strict=True))
        for kernel in content.kernels.values()
        if made.lowered in (None, kernel.symbol)
    ]
    unread = {(number, kernel.symbol): _unread(kernel, reports[number]) for number, kernel in kernels}
    known = _known(unread, [made.cubin for made in several], recorded) if recorded else {}
    texts = {place: text_of(contents[place[0]].elf, place[1]).data for place in unread if place not in known}
    code = disassemble(arch, texts)
    found: list[dict[str, KernelAnalysis]] = [{} for _ in several]
    for number, kernel in kernels:
        place, ptx = (number, kernel.symbol), several[number].ptx
        profile = known.get(place) or _read(contents[number], kernel, unread[place], code[place], ptx)
        types = parameter_types(kernel.symbol) or ptx_parameter_types(ptx, kernel.symbol)
        parameters = _typed(kernel.parameters, types)
        found[number][kernel.symbol] = KernelAnalysis(
            profile, parameters, kernel.max_threads_per_block, place in known, kernel.required_block
        )
    return found


Place = tuple[int, str]
"""Number of a cubin, and a kernel's symbol in it."""


def profile_of(cubin: Cubin, kernel: CubinKernel, instructions: tuple[Instruction, ...]) -> StaticProfile:
    """The profile by nothing but the cubin.  Raises ``BadCubin``."""
    return _read(cubin, kernel, _unread(kernel, read_log("")), instructions, "")


def _known(
    unread: Mapping[Place, StaticProfile], cubins: Sequence[bytes], recorded: Recorded
) -> dict[Place, StaticProfile]:
    """Profiles of cubins on record, but for those that say otherwise than the cubin and the assembler's log."""
    hashes = [hashlib.sha256(cubin).hexdigest() for cubin in cubins]
    found = {(number, symbol): recorded.get((hashes[number], symbol)) for number, symbol in unread}
    return {place: one for place, one in found.items() if one is not None and _without_code(one) == unread[place]}


def _without_code(profile: StaticProfile) -> StaticProfile:
    return msgspec.structs.replace(profile, instructions=0, opcodes={}, code_hash="")


def _unread(kernel: CubinKernel, report: Report) -> StaticProfile:
    """The profile as far as it is known before the machine code is read."""
    of_cubin = PtxasUsage(kernel.registers, kernel.barriers, kernel.shared_bytes, kernel.stack_bytes)
    usage = report.usage.get(kernel.symbol, of_cubin)
    frames = [report.frames[name] for name in (kernel.symbol, *kernel.functions) if name in report.frames]
    own_stack = frames[0].stack_bytes if frames else kernel.stack_bytes
    stack = usage.cumulative_stack_bytes
    stores, loads = _spilled_bytes(frames)
    return StaticProfile(
        registers=usage.registers,
        stack_bytes=own_stack if stack is None else stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        shared_bytes=usage.shared_bytes,
        constant_bytes=kernel.constant_bytes,
        barriers=usage.barriers,
        code_bytes=kernel.code_bytes,
        instructions=0,
        opcodes={},
        code_hash="",
    )


def _spilled_bytes(frames: Sequence[Frame]) -> tuple[int | None, int | None]:
    """Bytes stored and loaded by spills, as the log has them; None without a log."""
    if not frames:
        return None, None
    return sum(frame.spill_store_bytes for frame in frames), sum(frame.spill_load_bytes for frame in frames)


def _read(
    cubin: Cubin, kernel: CubinKernel, unread: StaticProfile, instructions: tuple[Instruction, ...], ptx: str
) -> StaticProfile:
    """The profile with what the machine code tells.

    Spills that no log told of are none where the code leaves local memory alone, else unknown: indexed arrays lie
    there too.
    """
    executed = executable(cubin, kernel, instructions)
    opcodes = histogram((line.opcode, line.operands) for line in executed)
    stores, loads = unread.spill_store_bytes, unread.spill_load_bytes
    unreachable = functools.partial(unreachable_symbols, ptx, kernel.symbol)
    resources = (unread.registers, unread.shared_bytes, unread.barriers)
    return msgspec.structs.replace(
        unread,
        spill_store_bytes=0 if stores is None and "local_store" not in opcodes else stores,
        spill_load_bytes=0 if loads is None and "local_load" not in opcodes else loads,
        instructions=len(executed),
        opcodes=opcodes,
        code_hash=hash_code(cubin, kernel, instructions, resources, unreachable),
    )


def executable(cubin: Cubin, kernel: CubinKernel, instructions: tuple[Instruction, ...]) -> list[Instruction]:
    """Instructions of the kernel and the functions it calls, each without its padding."""
    text = text_of(cubin.elf, kernel.symbol)
    starts = {0} | {-(-symbol.value // INSTRUCTION_BYTES) for symbol in cubin.elf.symbols_in(text)}
    executed: list[Instruction] = []
    for first, last in itertools.pairwise([*sorted(starts), -(-text.size // INSTRUCTION_BYTES)]):
        executed.extend(without_padding(instructions[first:last]))
    return executed


def _typed(parameters: tuple[Parameter, ...], types: Sequence[str | None] | None) -> tuple[Parameter, ...]:
    if types is None or len(types) != len(parameters):
        return parameters
    return tuple(msgspec.structs.replace(one, type=name) for one, name in zip(parameters, types, strict=True))
