"""Estimates of kernels out of their cubins: several together, and kept in the compile cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.code_hash import code_hash
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, parameter_base, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.profile import executable
from pytest_gpuperf.compile.machine_code.sass import disassemble
from pytest_gpuperf.compile.toolkit import disassembler
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.compile.warp_model.summary import MODEL_VERSION
from pytest_gpuperf.compile.warp_model.walk import dry_run
from pytest_gpuperf.model.warp_estimate import WarpEstimate


class KernelCode(NamedTuple):
    """One kernel in a cubin."""

    cubin: bytes
    symbol: str
    arch: str
    """``sm_90``"""
    launch: KnownLaunch | None = None
    """None: of no launch in particular."""
    code_hash: str = ""
    """What its record says; empty: whatever it is."""


def estimates_of(
    codes: Iterable[KernelCode], cache: CompileCache | None = None
) -> dict[KernelCode, WarpEstimate | None]:
    """An estimate of each kernel; None where its way is too long to walk, or its cubin has no such kernel or code.

    One run of nvdisasm reads all kernels of an architecture.  Raises ``ToolchainMissing``.
    """
    distinct = list(dict.fromkeys(codes))
    found = {code: kept for code in distinct if (kept := _kept(code, cache)) is not None}
    missing = [code for code in distinct if code not in found]
    if missing:
        by_arch = [[code for code in missing if code.arch == arch] for arch in dict.fromkeys(c.arch for c in missing)]
        if len(by_arch) == 1:  # a thread would only wait for its turn
            found.update(_made(missing))
        else:
            with ThreadPoolExecutor(max_workers=len(by_arch)) as readers:
                for made in readers.map(_made, by_arch):
                    found.update(made)
        for code in missing:
            if cache is not None:
                cache.put(_key(code), msgspec.msgpack.encode(found[code]))
    return {code: found[code].estimate for code in distinct}


class _Result(msgspec.Struct, frozen=True):
    """What the cache keeps: that there is no estimate is worth keeping too."""

    estimate: WarpEstimate | None


def _made(codes: Sequence[KernelCode]) -> dict[KernelCode, _Result]:
    """Of one architecture."""
    contents = {code: cubin for code in codes if (cubin := _readable(code)) is not None}
    texts = {code: text_of(cubin.elf, code.symbol).data for code, cubin in contents.items()}
    instructions = disassemble(codes[0].arch, texts)
    found = dict.fromkeys(codes, _Result(None))
    for code, cubin in contents.items():
        kernel = cubin.kernels[code.symbol]
        if code.code_hash and code_hash(cubin, kernel) != code.code_hash:
            continue
        executed = executable(cubin, kernel, instructions[code])
        found[code] = _Result(
            dry_run(executed, code.arch, kernel.parameters, parameter_base(kernel), _fitting(code, kernel))
        )
    return found


def _fitting(code: KernelCode, kernel: CubinKernel) -> KnownLaunch | None:
    """The launch, if its arguments are such as the kernel takes."""
    launch = code.launch
    return launch if launch is not None and launch.fits(kernel.parameters) else None


def _readable(code: KernelCode) -> Cubin | None:
    """The cubin, read; None where it does not have the kernel."""
    try:
        content = read_cubin(code.cubin)
    except BadCubin:  # whoever would launch it says so
        return None
    return content if code.symbol in content.kernels else None


def _kept(code: KernelCode, cache: CompileCache | None) -> _Result | None:
    content = cache.get(_key(code)) if cache is not None else None
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=_Result)
    except msgspec.DecodeError:  # a ValidationError is one
        return None


def _key(code: KernelCode) -> str:
    content = hashlib.sha256(code.cubin).hexdigest()
    parts = (
        "warp model",
        MODEL_VERSION,
        disassembler().version,
        code.arch,
        code.symbol,
        content,
        code.launch,
        code.code_hash,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()
