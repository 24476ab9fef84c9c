"""Kernels that will be asked for next are compiled along: the same evidence, sooner, and never at another's cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.compile import compilations, compiler
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import CompileError, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_for, ptx
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.nvrtc import Compiled, Program
from pytest_gpuperf.compile.source import KernelSource

TEXT = """
template <int N> __device__ __noinline__ float power(float x) { for (int k = 1; k < N; ++k) x *= x + N; return x; }
template <int N> __global__ void raise(float* data)
{
    static_assert(N < 9, "too high");
    __shared__ float tile[32 * N];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = power<N>(tile[31 - threadIdx.x]) / data[0];
}
extern "C" __global__ void plain(float* data) { data[threadIdx.x] = 1.0f; }
"""
ARCHS = ("sm_80", "sm_90")


def source(expression: str) -> KernelSource:
    return KernelSource(TEXT, expression)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str]]:
    """Name expressions and architectures that the compiler ran for."""
    ran: list[tuple[str | None, str]] = []
    real = compilations.compile_cubin

    def counted(program: Program, arch: str) -> Compiled:
        ran.append((program.expression, arch))
        return real(program, arch)

    monkeypatch.setattr(compilations, "compile_cubin", counted)
    return ran


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


def foreseeing(*names: str | None) -> compiler.Foreseen:
    def foreseen(_source_hash: str) -> Sequence[str | None]:
        return names

    return foreseen


def test_what_is_foreseen_is_in_the_cache_afterwards(
    tmp_path: Path, compiled: list[tuple[str | None, str]], disassembled: list[str]
) -> None:
    cache = CompileCache(tmp_path)
    compile_for(source("raise<1>"), ARCHS, cache, foreseeing("raise<1>", "raise<2>", "raise<3>", None))
    assert sorted(compiled, key=str) == sorted(
        [(name, arch) for name in ("raise<1>", "raise<2>", "raise<3>", None) for arch in ARCHS], key=str
    )
    assert sorted(disassembled) == ["sm_80", "sm_90"]
    compiled.clear()
    for name in ("raise<2>", "raise<3>", "plain"):
        compile_for(source(name), ARCHS, cache)
    assert compiled == []


def test_evidence_is_the_same_as_of_a_kernel_compiled_by_itself(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    compile_for(source("raise<1>"), ARCHS, cache, foreseeing("raise<4>", "raise<7>", None))
    for name in ("raise<1>", "raise<4>", "raise<7>", "plain"):
        assert compile_for(source(name), ARCHS, cache) == compile_for(source(name), ARCHS)


def test_nothing_is_foreseen_where_nothing_has_to_be_compiled(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    compile_for(source("raise<1>"), ARCHS, cache)

    def never(source_hash: str) -> Sequence[str]:
        raise AssertionError(source_hash)

    assert compile_for(source("raise<1>"), ARCHS, cache, never)


def test_a_foreseen_kernel_that_does_not_compile_harms_no_other(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    made = compile_for(source("raise<1>"), ARCHS, cache, foreseeing("raise<10>", "raise<2>"))
    assert made == compile_for(source("raise<1>"), ARCHS)
    with pytest.raises(CompileError, match="too high"):
        compile_for(source("raise<10>"), ARCHS, cache)


def test_a_kernel_with_a_mistake_is_told_whatever_is_foreseen(tmp_path: Path) -> None:
    with pytest.raises(UnknownKernel):
        compile_for(source("rise<1>"), ARCHS, CompileCache(tmp_path), foreseeing("raise<2>"))


def test_nothing_is_compiled_in_vain_where_nothing_is_kept(
    tmp_path: Path, compiled: list[tuple[str | None, str]]
) -> None:
    broken = CompileCache(tmp_path)
    broken.problem = "cannot be used"
    for cache in (None, broken):
        compiled.clear()
        compile_for(source("raise<1>"), ["sm_90"], cache, foreseeing("raise<2>"))
        assert compiled == [("raise<1>", "sm_90")]


def test_ptx_is_kept_with_the_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CompileCache(tmp_path)
    anew = {arch: ptx(source("raise<5>"), arch) for arch in (*ARCHS, "sm_120")}
    compile_for(source("raise<5>"), ARCHS, cache)
    elsewhere = ptx(source("raise<5>"), "sm_120", cache)  # no entry: compiled

    def never(program: Program, arch: str) -> None:
        raise AssertionError(f"{program.expression} for {arch}")

    monkeypatch.setattr(compiler, "compile_ptx", never)
    assert {arch: ptx(source("raise<5>"), arch, cache) for arch in ARCHS} | {"sm_120": elsewhere} == anew
