"""A machine without the compiler, the disassembler or the headers: each says what to install."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import pytest

from pytest_gpuperf.compile import nvrtc, toolkit
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code import sass
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
    path.write_text(f"#!/bin/sh\n{text}\n")
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


def test_without_a_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder(monkeypatch, None)
    with pytest.raises(ToolchainMissing, match=f"no nvdisasm.*{REMEDY}"):
        compile_kernel(KernelSource('extern "C" __global__ void k() {}', "k"), "sm_90")


def test_a_disassembler_that_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pathfinder(monkeypatch, str(tmp_path / "gone"))
    with pytest.raises(ToolchainMissing, match=f"gone does not run.*{REMEDY}"):
        disassembler()


@pytest.mark.parametrize("text", ["echo 'something else'", "exit 3"])
def test_a_program_that_is_no_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    pathfinder(monkeypatch, script(tmp_path, text))
    with pytest.raises(ToolchainMissing, match="is it nvdisasm"):
        disassembler()


def use(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(sass, "disassembler", lambda: InstalledTool(Path(path), "1.2.3"))


def test_a_disassembler_that_is_too_old_for_the_architecture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, script(tmp_path, "echo \"nvdisasm fatal : Value 'SM120' is not defined\" >&2; exit 1"))
    with pytest.raises(ToolchainMissing, match=f"nvdisasm 1.2.3 cannot disassemble code for sm_120: .*SM120.*{REMEDY}"):
        sass.disassemble("sm_120", {"k": bytes(128)})


def test_a_disassembler_of_another_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, script(tmp_path, "echo '/*0000*/ NOP ;'"))
    with pytest.raises(ToolchainMissing, match="prints 1 instructions of 8 in a form this plugin does not read"):
        sass.disassemble("sm_90", {"k": bytes(128)})


def test_a_disassembler_that_vanished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, str(tmp_path / "gone"))
    with pytest.raises(ToolchainMissing, match="does not run"):
        sass.disassemble("sm_90", {"k": bytes(128)})


def test_the_same_code_is_disassembled_once_by_one_disassembler_for_one_architecture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    for folder, opcode in (("one", "NOP"), ("other", "EXIT")):
        (tmp_path / folder).mkdir()
        use(monkeypatch, script(tmp_path / folder, f"echo {opcode} $4 >> '{asked}'\necho '/*0000*/ {opcode} ;'"))
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
