"""Machine code out of a store, believed only as far as it says itself what its record says of it.

Whoever can write a record can name any cubin in it.  What was proven of a record's code holds for the code of that
hash alone, so the hash is made anew from the cubin.  That takes a run of nvdisasm (0.2 s), once for each kernel: what
agreed is kept in the compile cache.
"""

from __future__ import annotations

import functools
import hashlib

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import OtherCode
from pytest_gpuperf.compile.machine_code.code_hash import FORM, may_be_recorded_as
from pytest_gpuperf.compile.machine_code.cubin import Cubin, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.profile import KernelAnalysis, profile_of
from pytest_gpuperf.compile.machine_code.ready_made import check_holds
from pytest_gpuperf.compile.machine_code.sass import Instruction, disassemble
from pytest_gpuperf.compile.toolkit import disassembler


def read_stored(
    cubin: bytes, symbol: str, arch: str, code_hash: str, cache: CompileCache | None = None
) -> KernelAnalysis:
    """Evidence of the kernel ``symbol`` of a cubin for ``arch``, which must have the ``code_hash`` on record.

    Parameters have no types: a symbol out of a stranger's file is not handed to the C++ runtime's demangler.
    Raises ``OtherCode``, ``BadCubin``, ``ToolchainMissing``.
    """
    parts = ("stored code 2", FORM, disassembler().version, arch, symbol, code_hash, hashlib.sha256(cubin).hexdigest())
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    found = _kept(key, cache)
    if found is None:
        found = _read(cubin, symbol, arch, code_hash)
        if cache is not None:
            cache.put(key, msgspec.msgpack.encode(found))
    return found


def _kept(key: str, cache: CompileCache | None) -> KernelAnalysis | None:
    content = cache.get(key) if cache is not None else None
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=KernelAnalysis)
    except msgspec.DecodeError:  # a ValidationError is one
        return None


@functools.lru_cache(maxsize=64)
def _read(cubin: bytes, symbol: str, arch: str, code_hash: str) -> KernelAnalysis:
    found = read_cubin(cubin)
    check_holds(found, symbol, arch)
    instructions = disassemble(arch, {symbol: text_of(found.elf, symbol).data})[symbol]
    return checked(found, symbol, instructions, code_hash)


def checked(cubin: Cubin, symbol: str, instructions: tuple[Instruction, ...], code_hash: str) -> KernelAnalysis:
    """Evidence of the kernel whose ``instructions`` these are.  Raises ``OtherCode``, ``BadCubin``."""
    kernel = cubin.kernels[symbol]
    profile = profile_of(cubin, kernel, instructions)
    if not may_be_recorded_as(code_hash, cubin, kernel, instructions, profile.code_hash):
        raise OtherCode(
            f"its code has the hash {profile.code_hash[:12]}, and the record says {code_hash[:12] or 'none'}"
        )
    profile = msgspec.structs.replace(profile, code_hash=code_hash)
    return KernelAnalysis(
        profile, kernel.parameters, kernel.max_threads_per_block, required_block=kernel.required_block
    )
