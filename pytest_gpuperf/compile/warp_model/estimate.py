"""Estimates of kernels out of their cubins: several together, and kept in the compile cache."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.binary import executable
from pytest_gpuperf.compile.machine_code.cubin import Cubin, parameter_base, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.sass import Instruction, disassemble
from pytest_gpuperf.compile.toolkit import disassembler
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.compile.warp_model.walk import MODEL_VERSION, DecodedKernel, dry_run
from pytest_gpuperf.garbage import no_collection
from pytest_gpuperf.model.warp_estimate import WarpEstimate

KEPT = 16
"""Programs that are kept while others are walked: a version is often compared with several."""

Disassembled = tuple[Cubin, tuple[Instruction, ...]]


class KernelCode(NamedTuple):
    """One kernel in a cubin."""

    cubin: bytes
    symbol: str
    arch: str
    """``sm_90``"""
    launch: KnownLaunch | None = None
    """None: of no launch in particular."""


Versions = tuple[KernelCode | None, KernelCode | None]
"""Two versions of a kernel that are compared, on one architecture; None where there is none."""
EstimatePair = tuple[WarpEstimate | None, WarpEstimate | None]
"""Of both, as they are launched or of no launch in particular; None where the way is too long to walk, or the cubin has
no such kernel."""


@no_collection()  # they make very many records and no cycle of them: looking for cycles takes a fifth of the time
def estimates_of(several: Iterable[Versions], cache: CompileCache | None = None) -> dict[Versions, EstimatePair]:
    """Estimates that compare, of each of several kernels.

    One run of nvdisasm reads all kernels of an architecture.  Raises ``ToolchainMissing``.
    """
    distinct, found = list(dict.fromkeys(several)), dict[Versions, EstimatePair]()
    for versions in distinct:
        with contextlib.suppress(msgspec.DecodeError):
            found[versions] = msgspec.msgpack.decode((cache and cache.get(_key(versions))) or b"", type=EstimatePair)
    missing = [one for one in distinct if one not in found]
    readable = _disassembled(code._replace(launch=None) for versions in missing for code in versions if code)
    program = functools.lru_cache(KEPT)(lambda code: _decoded(code, *readable[code]))

    @functools.cache
    def walked(code: KernelCode | None) -> WarpEstimate | None:
        bare = code._replace(launch=None) if code is not None else None
        return dry_run(program(bare), code.launch) if code is not None and bare in readable else None

    for versions in missing:
        old, new = walked(versions[0]), walked(versions[1])
        if not all(made is not None and made.launched for code, made in zip(versions, (old, new), strict=True) if code):
            old, new = (walked(code._replace(launch=None)) if code is not None else None for code in versions)
        found[versions] = old, new
        if cache is not None:
            cache.put(_key(versions), msgspec.msgpack.encode(found[versions]))
    return found


def _disassembled(codes: Iterable[KernelCode]) -> Mapping[KernelCode, Disassembled]:
    """The kernels that can be read, each once."""
    cubins: dict[KernelCode, Cubin] = {}
    texts: dict[str, dict[KernelCode, bytes]] = {}
    for code in dict.fromkeys(codes):
        try:
            cubin = read_cubin(code.cubin)
        except BadCubin:  # whoever would launch it says so
            continue
        if code.symbol in cubin.kernels and (text := text_of(cubin.elf, code.symbol).data):
            cubins[code] = cubin
            texts.setdefault(code.arch, {})[code] = text
    with ThreadPoolExecutor(max_workers=len(texts) or 1) as readers:
        read = readers.map(disassemble, texts, texts.values())
        return {code: (cubins[code], lines) for found in read for code, lines in found.items()}


def _decoded(code: KernelCode, cubin: Cubin, lines: tuple[Instruction, ...]) -> DecodedKernel:
    kernel = cubin.kernels[code.symbol]
    bank = cubin.elf.section(f".nv.constant2.{code.symbol}")
    constants = bank.data if bank is not None else b""
    executed = executable(cubin, kernel, lines)
    return DecodedKernel(executed, code.arch, kernel.parameters, parameter_base(kernel), constants)


def _key(versions: Versions) -> str:
    codes = [code and code._replace(cubin=hashlib.sha256(code.cubin).digest()) for code in versions]
    parts = ("warp model", MODEL_VERSION, disassembler().version, codes)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
