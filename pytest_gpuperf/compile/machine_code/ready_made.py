"""A kernel out of a cubin: what can be said of machine code that was compiled elsewhere, or long ago."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from pytest_gpuperf.compile.compile_errors import BadCubin, UnknownKernel
from pytest_gpuperf.compile.machine_code.cubin import Cubin, read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.profile import KernelAnalysis, analyse
from pytest_gpuperf.compile.machine_code.symbols import find_kernel, readable
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.remedies import NO_DEVICE_RUNTIME, needs_device_runtime
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import UNKNOWN_TOOLCHAIN, KernelBinary

_NAMED = 8
"""Kernels that a message names at most."""


def ready_made(
    cubin: bytes,
    symbol: str,
    *,
    place: str,
    name: str = "",
    source: str = "",
    compiler: str = "",
    log: str = "",
    arch: str = "",
) -> KernelBinary:
    """A kernel out of a cubin that somebody else has compiled, for the architecture that the cubin says.

    ``symbol`` is the kernel's or, for a C++ function, its unambiguous name; ``place`` is what errors call the cubin,
    ``name`` what people call the kernel.  ``source`` is what it was made from, in any form that changes with it.
    ``arch`` is the variant (``sm_90a``) that it was compiled for, where that is known.
    The toolchain is the ``compiler``, if that is known, and the assembler that the cubin names (``ptxas 13.0.88``);
    CUDA 12 and before leave that out for many architectures.  The assembler's ``log`` tells spilled bytes.
    Raises ``BadCubin``, ``UnknownKernel``, ``UnknownArchitecture`` and ``ToolchainMissing``.
    """
    try:
        found = read_cubin(cubin)
    except BadCubin as problem:
        raise BadCubin(f"{place}: {problem}") from problem
    if arch and plain(arch) != found.arch:
        raise BadCubin(f"{place}: it was compiled for {found.arch}, and not for {arch}")
    limits_of(found.arch)
    missing = sorted(one.name for one in found.elf.symbols if not one.section and needs_device_runtime(one.name))
    if missing:
        raise BadCubin(f"{place}: it is not linked, it lacks {', '.join(missing)}: {NO_DEVICE_RUNTIME}")
    assembler = f"ptxas {found.assembler}" if found.assembler else ""
    kernel = find_kernel(symbol, found.kernels, place)
    return binary_of(
        cubin, kernel, arch or found.arch, name=name or readable(symbol),
        read=analyse([Compiled(cubin, log=log)], found.arch)[0][kernel] if log else None,
        toolchain=", ".join(filter(None, (compiler, assembler))) or UNKNOWN_TOOLCHAIN,
        source_hash=hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest() if source else "",
    )  # fmt: skip


def ready_made_among(
    cubins: Sequence[bytes], arch: str, symbol: str, *, place: str, name: str = "", source: str = ""
) -> KernelBinary:
    """``ready_made`` for ``arch``, of the one of several cubins that has the kernel; raises alike."""
    place = f"{place} for {arch}"
    found: list[bytes] = []
    available: list[str] = []
    hint = ""
    for cubin in cubins:
        try:
            kernels = read_cubin(cubin).kernels
            find_kernel(symbol, kernels, place)
        except BadCubin as problem:
            raise BadCubin(f"{place}: {problem}") from problem
        except UnknownKernel as problem:
            available += problem.available
            hint = problem.hint
        else:
            found.append(cubin)
    if not found:
        raise UnknownKernel(symbol, place, available or None, hint)
    if len(set(found)) > 1:
        raise BadCubin(
            f"{place}: {len(found)} cubins in it have a kernel {symbol}: name the object file of one of them"
        )
    return ready_made(found[0], symbol, place=place, name=name, source=source, arch=arch)


def binary_of(
    cubin: bytes,
    symbol: str,
    arch: str,
    *,
    name: str = "",
    source_hash: str = "",
    toolchain: str = "",
    read: KernelAnalysis | None = None,
) -> KernelBinary:
    """The kernel ``symbol`` of a cubin for ``arch``; ``name`` is what people call it.

    ``read`` is what its machine code says where that was read before; else it is read now (0.2 s), and spilled bytes
    stay unknown where the code uses local memory.
    Raises ``BadCubin`` if it is no cubin, is for another architecture or has no such kernel.
    """
    if read is None:
        check_holds(read_cubin(cubin), symbol, arch)
        read = analyse([Compiled(cubin, lowered=symbol)], arch)[0][symbol]
    return KernelBinary(
        name=name or symbol,
        symbol=symbol,
        arch=arch,
        toolchain=toolchain,
        source_hash=source_hash,
        cubin=cubin,
        profile=read.profile,
        parameters=read.parameters,
        max_threads_per_block=read.max_threads_per_block,
        required_block=read.required_block,
    )


def check_holds(found: Cubin, symbol: str, arch: str) -> None:
    """Raise ``BadCubin`` unless the cubin is one for ``arch`` and has the kernel ``symbol``."""
    if re.sub("[af]$", "", arch) != found.arch:
        raise BadCubin(f"it was compiled for {found.arch}, and not for {arch}")
    if symbol not in found.kernels:
        raise BadCubin(f"it has no kernel {symbol}; it has {', '.join([*found.kernels][:_NAMED]) or 'none'}")
