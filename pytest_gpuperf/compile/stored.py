"""A kernel out of a stored cubin: what can be said of machine code whose source is not at hand."""

from __future__ import annotations

import re

from pytest_gpuperf.compile.analysis import Assembled, analyse
from pytest_gpuperf.compile.cubin import read_cubin
from pytest_gpuperf.compile.errors import BadCubin
from pytest_gpuperf.evidence import KernelBinary, StaticProfile


def binary_of(
    cubin: bytes,
    symbol: str,
    arch: str,
    *,
    name: str = "",
    source_hash: str = "",
    toolchain: str = "",
    profile: StaticProfile | None = None,
) -> KernelBinary:
    """The kernel ``symbol`` of a cubin for ``arch``; ``name`` is what people call it.

    ``profile`` is its static evidence where that is on record.  Without one it is read from the machine code,
    which takes a run of the disassembler (0.2 s) and leaves what only the assembler's log tells at 0: spilled
    bytes, static shared memory and barriers.
    Raises ``BadCubin`` if it is no cubin, is for another architecture or has no such kernel.
    """
    found = read_cubin(cubin)
    if re.sub("[af]$", "", arch) != found.arch:
        raise BadCubin(f"it was compiled for {found.arch}, and not for {arch}")
    if symbol not in found.kernels:
        raise BadCubin(f"it has no kernel {symbol}; it has {', '.join(found.kernels) or 'none'}")
    kernel = found.kernels[symbol]
    return KernelBinary(
        name=name or symbol,
        symbol=symbol,
        arch=arch,
        toolchain=toolchain,
        source_hash=source_hash,
        cubin=cubin,
        profile=profile or analyse(Assembled(cubin), arch)[symbol].profile,
        parameters=kernel.parameters,
        max_threads_per_block=kernel.max_threads_per_block,
    )
