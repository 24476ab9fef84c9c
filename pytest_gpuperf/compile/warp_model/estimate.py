"""Estimates of kernels out of their cubins: several together, and kept in the compile cache."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.cubin import Cubin, parameter_base, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.profile import executable
from pytest_gpuperf.compile.machine_code.sass import Instruction, disassemble
from pytest_gpuperf.compile.toolkit import disassembler
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.compile.warp_model.walk import MODEL_VERSION, DecodedKernel, dry_run
from pytest_gpuperf.model.warp_estimate import WarpEstimate

KEPT = 16
"""Programs that are kept while others are walked: a version is often compared with several."""


class KernelCode(NamedTuple):
    """One kernel in a cubin."""

    cubin: bytes
    symbol: str
    arch: str
    """``sm_90``"""
    launch: KnownLaunch | None = None
    """None: of no launch in particular."""


Versions = tuple[KernelCode, ...]
"""Versions of a kernel that are compared, on one architecture."""
Estimates = tuple[WarpEstimate | None, ...]
"""Of each version, all as they are launched or all of no launch in particular; None where its way is too long to walk,
or its cubin has no such kernel."""


def estimates_of(several: Iterable[Versions], cache: CompileCache | None = None) -> dict[Versions, Estimates]:
    """Estimates that compare, of each of several kernels.

    One run of nvdisasm reads all kernels of an architecture.  Raises ``ToolchainMissing``.
    """
    distinct = list(dict.fromkeys(several))
    found = {one: kept for one in distinct if (kept := _kept(one, cache)) is not None}
    missing = [one for one in distinct if one not in found]
    if missing:
        programs = _Programs(code for versions in missing for code in versions)
        for versions in missing:
            found[versions] = _walked(versions, [programs.of(code.cubin, code.symbol, code.arch) for code in versions])
            if cache is not None:
                cache.put(_key(versions), msgspec.msgpack.encode(found[versions]))
    return found


def _walked(versions: Versions, programs: Sequence[DecodedKernel | None]) -> Estimates:
    launched = [
        dry_run(program, code.launch) if program is not None and code.launch is not None else None
        for code, program in zip(versions, programs, strict=True)
    ]
    if all(one is not None and one.launched for one in launched):
        return tuple(launched)
    return tuple(None if program is None else dry_run(program) for program in programs)


class _Programs:
    """Kernels that can be read, disassembled once however often they are asked for."""

    def __init__(self, codes: Iterable[KernelCode]) -> None:
        kernels = {(code.cubin, code.symbol, code.arch) for code in codes}
        self._cubins = {content: _readable(content) for content in {content for content, _, _ in kernels}}
        texts: dict[str, dict[bytes, bytes]] = {}
        for content, symbol, arch in kernels:
            if text := self._text(content, symbol):
                texts.setdefault(arch, {})[text] = text
        with ThreadPoolExecutor(max_workers=len(texts) or 1) as readers:
            read = readers.map(disassemble, texts, texts.values())
            self._instructions: dict[str, dict[bytes, tuple[Instruction, ...]]] = dict(zip(texts, read, strict=True))
        self.of = functools.lru_cache(KEPT)(self._program)

    def _text(self, content: bytes, symbol: str) -> bytes:
        cubin = self._cubins[content]
        return text_of(cubin.elf, symbol).data if cubin is not None and symbol in cubin.kernels else b""

    def _program(self, content: bytes, symbol: str, arch: str) -> DecodedKernel | None:
        cubin, text = self._cubins[content], self._text(content, symbol)
        if cubin is None or not text:
            return None
        kernel = cubin.kernels[symbol]
        executed = executable(cubin, kernel, self._instructions[arch][text])
        bank = cubin.elf.section(f".nv.constant2.{symbol}")
        constants = bank.data if bank is not None else b""
        return DecodedKernel(executed, arch, kernel.parameters, parameter_base(kernel), constants)


def _readable(content: bytes) -> Cubin | None:
    try:
        return read_cubin(content)
    except BadCubin:  # whoever would launch it says so
        return None


def _kept(versions: Versions, cache: CompileCache | None) -> Estimates | None:
    content = cache.get(_key(versions)) if cache is not None else None
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=tuple[WarpEstimate | None, ...])
    except msgspec.DecodeError:  # a ValidationError is one
        return None


def _key(versions: Versions) -> str:
    codes = [code._replace(cubin=hashlib.sha256(code.cubin).digest()) for code in versions]
    parts = ("warp model", MODEL_VERSION, disassembler().version, codes)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
