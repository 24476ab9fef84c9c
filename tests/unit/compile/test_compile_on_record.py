"""Machine code that is on record is not read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.compile import compiler
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile

TEXT = """
template <int N> __global__ void add(float* data) { data[threadIdx.x] += N; }
extern "C" __global__ void plain(float* data) { data[threadIdx.x] = 1.0f; }
extern "C" __global__ void other(float* data) { data[threadIdx.x] = 2.0f; }
"""
ARCHS = ("sm_80", "sm_90")
Profiles = dict[str, StaticProfile]


def source(name: str) -> KernelSource:
    return KernelSource(TEXT, name)


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path)


@pytest.fixture
def disassembled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Architectures that nvdisasm ran for."""
    ran: list[str] = []
    real = sass.run_nvdisasm

    def counted(arch: str, code: bytes) -> str:
        ran.append(arch)
        return real(arch, code)

    monkeypatch.setattr(sass, "run_nvdisasm", counted)
    return ran


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Name expressions that the compiler ran for."""
    ran: list[str | None] = []
    real = compiler.compile_cubin

    def counted(source: KernelSource, arch: str) -> Compiled:
        ran.append(source.expression)
        return real(source, arch)

    monkeypatch.setattr(compiler, "compile_cubin", counted)
    return ran


def read(*names: str) -> dict[str, dict[str, KernelBinary]]:
    """Kernels with nothing on record, by architecture."""
    return {name: compile_for(source(name), ARCHS) for name in names}


def on_record(*binaries: KernelBinary) -> Profiles:
    return {binary.profile.code_hash: binary.profile for binary in binaries}


@pytest.mark.parametrize("name", ["add<1>", "plain"])
def test_a_cubin_on_record_is_not_read_and_its_evidence_is_the_same(
    cache: CompileCache, disassembled: list[str], name: str
) -> None:
    known = read("plain", "other", "add<1>")
    profiles = on_record(*(binary for of_arch in known.values() for binary in of_arch.values()))
    disassembled.clear()
    for _ in range(2):
        assert compile_for(source(name), ARCHS, cache, recorded=profiles) == known[name]
    assert disassembled == []


def test_a_kernel_that_is_not_on_record_is_read_beside_one_that_is(
    cache: CompileCache, disassembled: list[str]
) -> None:
    known = read("plain", "other")
    profiles = on_record(*known["plain"].values())
    disassembled.clear()
    assert compile_for(source("other"), ARCHS, cache, recorded=profiles) == known["other"]
    assert sorted(disassembled) == [*ARCHS]


def test_of_an_instance_of_a_template_nothing_else_in_its_cubin_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    real, sizes = sass.run_nvdisasm, []

    def counted(arch: str, code: bytes) -> str:
        sizes.append(len(code))
        return real(arch, code)

    monkeypatch.setattr(sass, "run_nvdisasm", counted)
    made = compile_kernel(source("add<3>"), "sm_90")
    assert b".text.plain" in made.cubin
    assert sizes == [made.profile.code_bytes]
