"""From a cubin, and the assembler's log and PTX where they are at hand, to the static profile of every kernel in it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from pytest_gpuperf.compile.cubin.code_hash import hash_code
from pytest_gpuperf.compile.cubin.cubin_reader import Cubin, CubinKernel, read_cubin, text_of
from pytest_gpuperf.compile.cubin.disassembly import Instruction, disassemble, without_padding
from pytest_gpuperf.compile.cubin.opcode_classes import histogram
from pytest_gpuperf.compile.cubin.symbol_names import parameter_types
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.ptx_text import ptx_parameter_types, unreachable_symbols
from pytest_gpuperf.compile.ptxas_log import Frame, PtxasUsage, Report, read_log
from pytest_gpuperf.model.evidence import Parameter, Record, StaticProfile


class KernelAnalysis(Record, frozen=True):
    """Evidence of one kernel besides its machine code."""

    profile: StaticProfile
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None = None


def analyse(several: Sequence[Compiled], arch: str) -> list[dict[str, KernelAnalysis]]:
    """Analyses of each cubin by symbol, disassembled in one go.  Raises ``BadCubin``, ``ToolchainMissing``."""
    contents = [read_cubin(made.cubin) for made in several]
    texts = {
        (number, symbol): text_of(content.elf, symbol).data
        for number, content in enumerate(contents)
        for symbol in content.kernels
    }
    code = disassemble(arch, texts)
    found: list[dict[str, KernelAnalysis]] = []
    for number, (made, content) in enumerate(zip(several, contents, strict=True)):
        report, kernels = read_log(made.log), content.kernels.values()
        found.append(
            {one.symbol: _analyse(content, one, report, code[number, one.symbol], made.ptx) for one in kernels}
        )
    return found


def _analyse(
    cubin: Cubin, kernel: CubinKernel, report: Report, instructions: tuple[Instruction, ...], ptx: str
) -> KernelAnalysis:
    of_cubin = PtxasUsage(kernel.registers, kernel.barriers, kernel.shared_bytes, kernel.stack_bytes)
    usage = report.usage.get(kernel.symbol, of_cubin)
    frames = [report.frames[name] for name in (kernel.symbol, *kernel.functions) if name in report.frames]
    own_stack = frames[0].stack_bytes if frames else kernel.stack_bytes
    stack = usage.cumulative_stack_bytes
    executed = executable(cubin, kernel, instructions)
    opcodes = histogram((line.opcode, line.operands) for line in executed)
    stores, loads = _spilled_bytes(frames, opcodes)
    unreachable = functools.partial(unreachable_symbols, ptx, kernel.symbol)
    resources = (usage.registers, usage.shared_bytes, usage.barriers)
    profile = StaticProfile(
        registers=usage.registers,
        stack_bytes=own_stack if stack is None else stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        shared_bytes=usage.shared_bytes,
        constant_bytes=kernel.constant_bytes,
        barriers=usage.barriers,
        code_bytes=kernel.code_bytes,
        instructions=len(executed),
        opcodes=opcodes,
        code_hash=hash_code(cubin, kernel, instructions, resources, unreachable),
    )
    types = parameter_types(kernel.symbol) or ptx_parameter_types(ptx, kernel.symbol)
    return KernelAnalysis(profile, _typed(kernel.parameters, types), kernel.max_threads_per_block)


def _spilled_bytes(frames: Sequence[Frame], opcodes: Mapping[str, int]) -> tuple[int | None, int | None]:
    """Bytes stored and loaded by spills, as the log has them.

    Without a log: none where the code leaves local memory alone, else unknown, since indexed arrays lie there too.
    """
    if frames:
        return sum(frame.spill_store_bytes for frame in frames), sum(frame.spill_load_bytes for frame in frames)
    return None if "local_store" in opcodes else 0, None if "local_load" in opcodes else 0


def executable(cubin: Cubin, kernel: CubinKernel, instructions: tuple[Instruction, ...]) -> list[Instruction]:
    """Instructions of the kernel and the functions it calls, each without its padding."""
    text = text_of(cubin.elf, kernel.symbol)
    starts = sorted({0} | {symbol.value for symbol in cubin.elf.symbols if symbol.section == text.index})
    executed: list[Instruction] = []
    for start, end in zip(starts, [*starts[1:], text.size], strict=True):
        executed.extend(without_padding(tuple(line for line in instructions if start <= line.address < end)))
    return executed


def _typed(parameters: tuple[Parameter, ...], types: Sequence[str | None] | None) -> tuple[Parameter, ...]:
    if types is None or len(types) != len(parameters):
        return parameters
    return tuple(msgspec.structs.replace(one, type=name) for one, name in zip(parameters, types, strict=True))
