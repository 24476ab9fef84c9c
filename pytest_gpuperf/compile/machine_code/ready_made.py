"""A kernel out of a cubin: what can be said of machine code that was compiled elsewhere, or long ago."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import msgspec

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.cubin import Cubin, read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.profile import analyse, described, profile_of
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
    found = _read(cubin, place)
    if arch and plain(arch) != found.arch:
        raise BadCubin(f"{place}: it was compiled for {found.arch}, and not for {arch}")
    limits_of(found.arch)
    missing = sorted(one.name for one in found.elf.symbols if not one.section and needs_device_runtime(one.name))
    if missing:
        raise BadCubin(f"{place}: it is not linked, it lacks {', '.join(missing)}: {NO_DEVICE_RUNTIME}")
    assembler = f"ptxas {found.assembler}" if found.assembler else ""
    kernel = find_kernel(symbol, found.kernels, place)
    return msgspec.structs.replace(
        binary_of(cubin, kernel, arch or found.arch, log=log),
        name=name or readable(symbol),
        toolchain=", ".join(filter(None, (compiler, assembler))) or UNKNOWN_TOOLCHAIN,
        source_hash=hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest() if source else "",
    )


def cubin_with(cubins: Sequence[bytes], symbol: str, place: str) -> bytes:
    """The one of several cubins that has the kernel; raises as ``ready_made``."""
    kernels = [_read(cubin, place).kernels for cubin in cubins]
    full = find_kernel(symbol, dict.fromkeys(itertools.chain.from_iterable(kernels)), place)
    found = {cubin for cubin, own in zip(cubins, kernels, strict=True) if full in own}
    if len(found) > 1:
        raise BadCubin(
            f"{place}: {len(found)} cubins in it have a kernel {symbol}: name the object file of one of them"
        )
    return found.pop()


def binary_of(cubin: bytes, symbol: str, arch: str, *, log: str = "") -> KernelBinary:
    """The kernel ``symbol`` of a cubin for ``arch``, read whole (0.2 s); spilled bytes are known from the log alone.

    Raises ``BadCubin`` if it is no cubin, ``KeyError`` if it has no such kernel; ``ToolchainMissing``.
    """
    kernels = analyse(Compiled(cubin, lowered=symbol, log=log), arch)
    return msgspec.structs.replace(kernels[symbol], cubin=cubin)


def stored_binary(cubin: bytes, symbol: str, arch: str, on_record: str) -> KernelBinary:
    """The same out of a store, whose code must have the hash ``on_record``.  Its profile is without instructions.

    Whoever can write a record can name any cubin in it.  Parameters have no types: a symbol out of a stranger's file is
    not handed to the C++ runtime's demangler.  Raises ``BadCubin`` for other code, and if it is no cubin, is for
    another architecture or has no such kernel.
    """
    found = read_cubin(cubin)
    if plain(arch) != found.arch:
        raise BadCubin(f"it was compiled for {found.arch}, and not for {arch}")
    if symbol not in found.kernels:
        raise BadCubin(f"it has no kernel {symbol}; it has {', '.join([*found.kernels][:_NAMED]) or 'none'}")
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
