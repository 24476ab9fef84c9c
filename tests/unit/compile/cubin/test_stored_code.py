"""Machine code out of a store is taken only where it is that of its record, found out by its own bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin, OtherCode
from pytest_gpuperf.compile.compiler import compile_together
from pytest_gpuperf.compile.cubin import disassembly, stored_code
from pytest_gpuperf.compile.cubin.stored_code import read_stored
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary

ARCH = "sm_90"
TWO = """
extern "C" __global__ void one(float* out) { out[threadIdx.x] += 1.5f; }
extern "C" __global__ void two(float* out) { out[threadIdx.x] *= 2.5f; }
"""
TABLES = """
__constant__ float a[16] = {1.0f, 2.0f};
__constant__ float b[16] = {3.0f, 4.0f};
__constant__ int c[4] = {7};
__device__ double d[3] = {0.5};
extern "C" __global__ void one(float* out, int i) { out[0] = a[i]; }
extern "C" __global__ void two(float* out, int i) { out[0] = b[i] + c[i] + d[i]; }
"""
"""Of the constants that a kernel indexes, its PTX tells which it means, and its cubin does not."""


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, str], KernelBinary]:
    sources = {(text, name): KernelSource(text, name) for text in (TWO, TABLES) for name in ("one", "two")}
    found = compile_together(sources.values(), [ARCH])
    return {place: found[source, ARCH] for place, source in sources.items()}


@pytest.mark.parametrize("text", [TWO, TABLES], ids=["plain", "tables"])
@pytest.mark.parametrize("name", ["one", "two"])
def test_the_code_on_record_is_read(made: dict[tuple[str, str], KernelBinary], text: str, name: str) -> None:
    binary = made[text, name]
    read = read_stored(binary.cubin, name, ARCH, binary.profile.code_hash)
    assert read.profile.code_hash == binary.profile.code_hash
    assert read.profile.instructions == binary.profile.instructions
    assert [(one.offset, one.size) for one in read.parameters] == [(o.offset, o.size) for o in binary.parameters]


def test_another_kernel_of_the_cubin_is_refused(made: dict[tuple[str, str], KernelBinary]) -> None:
    binary = made[TWO, "one"]
    with pytest.raises(OtherCode, match=r"its code has the hash \w{12}, and the record says \w{12}$"):
        read_stored(binary.cubin, "two", ARCH, binary.profile.code_hash)


@pytest.mark.parametrize("code_hash", ["", "0" * 64])
def test_a_record_of_no_code_at_all_is_refused(made: dict[tuple[str, str], KernelBinary], code_hash: str) -> None:
    with pytest.raises(OtherCode, match=f"the record says {code_hash[:12] or 'none'}"):
        read_stored(made[TABLES, "two"].cubin, "two", ARCH, code_hash)


def test_another_constant_behind_the_same_code_is_refused(made: dict[tuple[str, str], KernelBinary]) -> None:
    binary = made[TABLES, "one"]
    altered = binary.cubin.replace(bytes.fromhex("0000803f00000040"), bytes.fromhex("0000803f00004040"))
    assert altered != binary.cubin
    with pytest.raises(OtherCode):
        read_stored(altered, "one", ARCH, binary.profile.code_hash)


@pytest.mark.parametrize(("symbol", "arch"), [("three", "sm_90"), ("one", "sm_80")])
def test_a_cubin_without_the_kernel_or_of_another_architecture_is_refused(
    made: dict[tuple[str, str], KernelBinary], symbol: str, arch: str
) -> None:
    binary = made[TWO, "one"]
    with pytest.raises(BadCubin, match=r"no kernel three; it has|compiled for sm_90, and not for sm_80"):
        read_stored(binary.cubin, symbol, arch, binary.profile.code_hash)


def test_code_is_read_once_for_each_record(
    made: dict[tuple[str, str], KernelBinary], disassembled: list[str], tmp_path: Path
) -> None:
    binary, cache = made[TWO, "one"], CompileCache(tmp_path)
    disassembly._printed.cache_clear()
    first = read_stored(binary.cubin, "one", ARCH, binary.profile.code_hash, cache)
    stored_code._read.cache_clear()
    assert read_stored(binary.cubin, "one", ARCH, binary.profile.code_hash, cache) == first
    assert disassembled == [ARCH]
    with pytest.raises(OtherCode):
        read_stored(binary.cubin, "two", ARCH, binary.profile.code_hash, cache)


def test_what_was_refused_is_not_kept(made: dict[tuple[str, str], KernelBinary], tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    for _ in range(2):
        with pytest.raises(OtherCode):
            read_stored(made[TWO, "one"].cubin, "one", ARCH, "0" * 64, cache)
    assert not list(tmp_path.rglob("*.entry"))
