"""From a cubin, and the assembler's log and PTX where they are at hand, to its kernels with their static profiles.

Instructions are read by nvdisasm, but not for machine code of a recorded hash: it would say the same.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import MOST_KERNELS, BadCubin
from pytest_gpuperf.compile.compiler_texts import Spills, ptx_parameter_types, spills_in
from pytest_gpuperf.compile.machine_code.code_hash import code_hash
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.sass import (
    INSTRUCTION_BYTES,
    Instruction,
    Name,
    disassemble,
    histogram,
    without_padding,
)
from pytest_gpuperf.compile.machine_code.symbols import find_kernel, parameter_types, readable
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.remedies import DEVICE_RUNTIME, NO_DEVICE_RUNTIME
from pytest_gpuperf.compile.source import hash_of_source
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import UNKNOWN_TOOLCHAIN, KernelBinary, StaticProfile

Recorded = Mapping[str, StaticProfile]
"""Recorded profiles, by the hash of their code."""
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
    cubin, spills = read_cubin(made.cubin), spills_in(made.log)
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
    known = [spills[name] for name in (kernel.symbol, *kernel.functions) if name in spills]
    return StaticProfile(
        registers=kernel.registers,
        stack_bytes=kernel.stack_bytes,
        spill_store_bytes=sum(one.stores for one in known) if known else None,
        spill_load_bytes=sum(one.loads for one in known) if known else None,
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
    """Profiles with instructions, by any name: recorded ones, the others by one run of nvdisasm.

    Without a log there are no spills if the code does not use local memory; otherwise arrays may be there too.
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


# --- kernels that were compiled elsewhere, or long ago ---------------------------------------------


def ready_made(
    cubin: bytes, symbol: str, *, place: str, name: str = "", source: str = "", compiler: str = "", log: str = "",
    arch: str = "",
) -> KernelBinary:  # fmt: skip
    """A kernel out of a cubin that somebody else has compiled, for the architecture that the cubin says.

    ``symbol`` is the kernel's or, for a C++ function, its unambiguous name; ``place`` is what errors call the cubin,
    ``name`` what people call the kernel.  ``source`` is what it was made from, in any form that changes with it.
    ``arch`` is the variant (``sm_90a``) that it was compiled for, where that is known.
    The toolchain is the ``compiler``, if that is known, and the assembler that the cubin names (``ptxas 13.0.88``);
    CUDA 12 and before leave that out for many architectures.  The assembler's ``log`` tells spilled bytes.
    Raises ``BadCubin``, ``UnknownKernel``, ``UnknownArchitecture`` and ``ToolchainMissing``.
    """
    found = _read(cubin, place)
    if arch and plain(arch) != found.arch:
        raise BadCubin(f"{place}: it was compiled for {found.arch}, and not for {arch}")
    limits_of(found.arch)
    missing = sorted(one.name for one in found.elf.symbols if not one.section and DEVICE_RUNTIME.fullmatch(one.name))
    if missing:
        raise BadCubin(f"{place}: it is not linked, it lacks {', '.join(missing)}: {NO_DEVICE_RUNTIME}")
    assembler = f"ptxas {found.assembler}" if found.assembler else ""
    kernel = find_kernel(symbol, found.kernels, place)
    return msgspec.structs.replace(
        analyse(Compiled(cubin, lowered=kernel, log=log), arch or found.arch)[kernel],
        cubin=cubin,
        name=name or readable(symbol),
        toolchain=", ".join(filter(None, (compiler, assembler))) or UNKNOWN_TOOLCHAIN,
        source_hash=hash_of_source(source) if source else "",
    )


def loaded(
    codes: Mapping[tuple[bytes, str], str], arch: str, recorded: Recorded = NOTHING_RECORDED
) -> dict[tuple[bytes, str], KernelBinary]:
    """Kernels out of cubins that run on a GPU of ``arch``, by cubin and symbol; the values are their names for people.

    As ``ready_made``, all in one go.  A cubin that cannot be read is left out.  Raises ``ToolchainMissing``.
    """
    read = {cubin: found for cubin, _ in codes if (found := _read_loaded(cubin)) is not None}
    unread = {}
    for cubin, symbol in codes:
        if cubin in read and symbol in read[cubin].kernels:
            kernel = read[cubin].kernels[symbol]
            unread[cubin, symbol] = Unread(read[cubin], kernel, profile_of(read[cubin], kernel))
    return {
        code: msgspec.structs.replace(
            described(unread[code].kernel, arch, profile), cubin=code[0], name=codes[code],
            toolchain=f"ptxas {version}" if (version := unread[code].cubin.assembler) else UNKNOWN_TOOLCHAIN,
        )
        for code, profile in with_instructions(arch, unread, recorded).items()
    }  # fmt: skip


@functools.lru_cache(maxsize=8)
def _read_loaded(cubin: bytes) -> Cubin | None:
    """Kept: the callables of a suite share the modules of a library, which have up to 14 MB."""
    with contextlib.suppress(BadCubin):
        return read_cubin(cubin)
    return None


def cubin_with(cubins: Sequence[bytes], symbol: str, place: str) -> bytes:
    """The one of several cubins that has the kernel; raises as ``ready_made``."""
    kernels = [_read(cubin, place).kernels for cubin in cubins]
    full = find_kernel(symbol, dict.fromkeys(itertools.chain.from_iterable(kernels)), place)
    found = {cubin for cubin, own in zip(cubins, kernels, strict=True) if full in own}
    if len(found) > 1:
        raise BadCubin(
            f"{place}: {len(found)} of its cubins have a kernel {symbol}: pass the object file of one of them"
        )
    return found.pop()


def stored_binary(cubin: bytes, symbol: str, arch: str, on_record: str) -> KernelBinary:
    """A kernel out of a store, whose code must have the hash ``on_record``.  Its profile is without instructions.

    Whoever can write a record can name any cubin in it.  Parameters have no types: a symbol out of a stranger's file is
    not handed to the C++ runtime's demangler.  Raises ``BadCubin`` for other code, and if it is no cubin, is for
    another architecture or has no such kernel.
    """
    found = read_cubin(cubin)
    if plain(arch) != found.arch:
        raise BadCubin(f"it was compiled for {found.arch}, and not for {arch}")
    if symbol not in found.kernels:
        raise BadCubin(f"it has no kernel {symbol}; it has {first_of([*found.kernels], MOST_KERNELS) or 'none'}")
    kernel = found.kernels[symbol]
    profile = profile_of(found, kernel)
    if (own := profile.code_hash) != on_record:
        raise BadCubin(f"its code has the hash {own[:12]}, and the record says {on_record[:12] or 'none'}")
    return msgspec.structs.replace(described(kernel, arch, profile), cubin=cubin)


def _read(cubin: bytes, place: str) -> Cubin:
    try:
        return read_cubin(cubin)
    except BadCubin as problem:
        raise BadCubin(f"{place}: {problem}") from problem
