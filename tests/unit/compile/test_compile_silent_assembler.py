"""A log that lacks a kernel is never believed: it would report no spills, no shared memory and no barriers."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile import compiler, nvrtc
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.nvrtc import Compiled, compile_cubin
from pytest_gpuperf.compile.source import KernelSource

SOURCE = KernelSource(
    text='extern "C" __global__ void tile(float* a) { __shared__ float s[64]; s[threadIdx.x] = a[threadIdx.x]; '
    "__syncthreads(); a[threadIdx.x] = s[63 - threadIdx.x]; }",
    name="tile",
)


def silent(times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the assembler say nothing the first ``times`` times; returns what was compiled."""
    compiled: list[str] = []

    def compile_silently(source: KernelSource, arch: str) -> Compiled:
        made = compile_cubin(source, arch)
        compiled.append(arch)
        return made._replace(log="") if len(compiled) <= times else made

    monkeypatch.setattr(compiler, "compile_cubin", compile_silently)
    return compiled


def test_a_silent_assembler_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = silent(1, monkeypatch)
    assert compile_kernel(SOURCE, "sm_80").profile.shared_bytes == 256
    assert compiled == ["sm_80", "sm_80"]


def test_one_that_stays_silent_is_an_error_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    silent(100, monkeypatch)
    with pytest.raises(CompileProblem, match=r"did not report on tile for sm_80"):
        compile_kernel(SOURCE, "sm_80")


@pytest.mark.parametrize(("version", "kept_out"), [(12, False), (13, True)])
def test_the_cache_of_a_compiler_that_has_one_is_kept_out(
    monkeypatch: pytest.MonkeyPatch, version: int, kept_out: bool
) -> None:
    real = nvrtc.nvrtc_bindings()
    given: list[bytes] = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

        def nvrtcVersion(self) -> tuple[object, int, int]:
            return real.nvrtcResult.NVRTC_SUCCESS, version, 0

        def nvrtcCompileProgram(self, handle: object, count: int, options: list[bytes]) -> object:
            given.extend(options)
            return real.nvrtcCompileProgram(handle, count, options)

    monkeypatch.setattr(nvrtc, "nvrtc_bindings", Watched)
    compile_cubin(SOURCE, "sm_90")
    assert (b"--no-cache" in given) == kept_out
