"""A machine without the compiler, the disassembler or the headers, or with odd ones: each says what to install."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import pytest

from pytest_gpuperf.compile import compiler, nvrtc, toolkit
from pytest_gpuperf.compile.compile_errors import CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.nvrtc import Compiled, compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, disassembler, nvrtc_bindings, toolkit_folders

REMEDY = r'pip install "pytest-gpuperf\[static\]"'


@pytest.fixture(autouse=True)
def fresh() -> object:
    """Each test looks for the tools anew, and the next one finds the real ones again."""
    found = (nvrtc_bindings, disassembler, toolkit_folders)
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


def pathfinder(monkeypatch: pytest.MonkeyPatch, binary: str | None, headers: str | None = None) -> None:
    fake = ModuleType("cuda.pathfinder")
    fake.find_nvidia_binary_utility = lambda _name: binary  # type: ignore[attr-defined]
    fake.find_nvidia_header_directory = lambda _name: headers  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", fake)


def script(folder: Path, text: str) -> str:
    path = folder / "nvdisasm"
    path.write_text(f"{text}\n")
    path.chmod(0o755)
    return str(path)


def test_without_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    with pytest.raises(ToolchainMissing, match=f"cuda-bindings and NVRTC cannot be loaded.*{REMEDY}"):
        nvrtc_bindings()


def test_without_the_compilers_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise RuntimeError("Failure finding libnvrtc.so\nsearched: everywhere")

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", SimpleNamespace(nvrtcVersion=missing))
    with pytest.raises(ToolchainMissing, match=rf"cannot be loaded \(Failure finding libnvrtc.so\).*{REMEDY}"):
        nvrtc_bindings()


def test_a_compiler_that_breaks_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = nvrtc_bindings()
    failed = (bindings.nvrtcResult.NVRTC_ERROR_INTERNAL_ERROR,)
    monkeypatch.setattr(bindings, "nvrtcGetCUBIN", lambda *_: failed)
    with pytest.raises(ToolchainMissing, match=r"failed unexpectedly \(NVRTC_ERROR_INTERNAL_ERROR\)"):
        compile_kernel(KernelSource('extern "C" __global__ void k() {}', "k"), "sm_90")


def test_a_compiler_without_its_builtins(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = nvrtc_bindings()
    failed = (bindings.nvrtcResult.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE,)
    monkeypatch.setattr(bindings, "nvrtcCompileProgram", lambda *_: failed)
    with pytest.raises(ToolchainMissing, match="libnvrtc-builtins"):
        nvrtc.compile_cubin(KernelSource("", "k"), "sm_90")


def test_without_a_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    with pytest.raises(ToolchainMissing, match=f"to find nvdisasm with.*{REMEDY}"):
        disassembler()
    assert toolkit_folders() == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, f"no nvdisasm.*{REMEDY}"),
        ("", f"nvdisasm does not run.*{REMEDY}"),
        ("#!/bin/sh\necho 'something else'", "is it nvdisasm"),
        ("#!/bin/sh\nexit 3", "is it nvdisasm"),
    ],
    ids=["none", "not a program", "of another version", "failing"],
)
def test_without_a_disassembler_that_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, words: str
) -> None:
    pathfinder(monkeypatch, None if text is None else script(tmp_path, text))
    with pytest.raises(ToolchainMissing, match=words):
        disassembler()


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    path = Path(script(folder, f"#!/bin/sh\n{text}"))
    monkeypatch.setattr(sass, "disassembler", lambda: InstalledTool(path, "1.2.3"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo \"nvdisasm fatal : Value 'SM120' is not defined\" >&2; exit 1",
         f"nvdisasm 1.2.3 cannot disassemble code for sm_120: .*SM120.*{REMEDY}"),
        ("echo '/*0000*/ NOP ;'", "prints 1 instructions of 8 in a form this plugin does not read"),
    ],
    ids=["too old", "of another form"],
)  # fmt: skip
def test_a_disassembler_that_cannot_read_the_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str
) -> None:
    use(monkeypatch, tmp_path, text)
    with pytest.raises(ToolchainMissing, match=words):
        sass.disassemble("sm_120", {"k": bytes(128)})


def test_the_same_code_is_disassembled_once_by_one_disassembler_for_one_architecture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    for folder, opcode in (("one", "NOP"), ("other", "EXIT")):
        (tmp_path / folder).mkdir()
        use(monkeypatch, tmp_path / folder, f"echo {opcode} $4 >> '{asked}'\necho '/*0000*/ {opcode} ;'")
        for arch in ("sm_90", "sm_80", "sm_90"):
            ((found,),) = sass.disassemble(arch, {"k": bytes(16)}).values()
            assert found.opcode == opcode
    assert asked.read_text().splitlines() == ["NOP SM90", "NOP SM80", "EXIT SM90", "EXIT SM80"]


def test_headers_are_taken_from_folders_that_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pathfinder(monkeypatch, None, str(tmp_path))
    assert toolkit_folders() == (tmp_path,)
    toolkit_folders.cache_clear()
    pathfinder(monkeypatch, None, str(tmp_path / "gone"))
    assert toolkit.toolkit_folders() == ()


# --- an assembler whose log lacks a kernel --------------------------------------------------------

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
