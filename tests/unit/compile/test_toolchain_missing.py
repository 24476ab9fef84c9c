"""A machine without the compiler, the disassembler or the headers, or with odd ones; Ctrl-C while NVRTC compiles."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import cuda.pathfinder
import msgspec
import pytest

from pytest_gpuperf.compile import compiler
from pytest_gpuperf.compile.compile_errors import CompileError, CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.nvrtc import Compiled, compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, disassembler, nvrtc_bindings, toolkit_folders

REMEDY = r'pip install "pytest-gpuperf\[static\]"'
SOURCE = KernelSource('extern "C" __global__ void tile(float* a) { a[threadIdx.x] *= 2; }', "tile")


@pytest.fixture(autouse=True)
def fresh() -> object:
    """Each test looks for the tools anew, and the next one finds the real ones again."""
    found = (nvrtc_bindings, disassembler, toolkit_folders)
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


def pathfinder(monkeypatch: pytest.MonkeyPatch, binary: str | None) -> None:
    fake = ModuleType("cuda.pathfinder")
    fake.find_nvidia_binary_utility = lambda _name: binary  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", fake)


def script(folder: Path, text: str) -> str:
    path = folder / "nvdisasm"
    path.write_text(f"{text}\n")
    path.chmod(0o755)
    return str(path)


def test_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise RuntimeError("Failure finding libnvrtc.so\nsearched: everywhere")

    for bindings, words in ((None, ""), (SimpleNamespace(nvrtcVersion=missing), "Failure finding libnvrtc.so")):
        monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", bindings)
        with pytest.raises(ToolchainMissing, match=rf"cuda-bindings and NVRTC cannot be loaded.*{words}.*{REMEDY}"):
            nvrtc_bindings()


def test_library_beside_the_compiler_is_loaded_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NVRTC asks the dynamic linker for it, which does not know the folder of a copy that ``CUDA_PATH`` names."""
    nvrtc_bindings()  # the bindings look for NVRTC once
    nvrtc_bindings.cache_clear()
    beside = tmp_path / "libnvrtc-builtins.so.13.0"
    shutil.copy(msgspec._core.__file__, beside)  # any library
    found = SimpleNamespace(abs_path=str(tmp_path / "libnvrtc.so.13"))
    monkeypatch.setattr(cuda.pathfinder, "load_nvidia_dynamic_lib", lambda _name: found)
    nvrtc_bindings()
    assert str(beside) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize(("call", "status", "words"), [
    ("nvrtcGetCUBIN", "INTERNAL_ERROR", r"failed unexpectedly \(NVRTC_ERROR_INTERNAL_ERROR\)"),
    ("nvrtcCompileProgram", "BUILTIN_OPERATION_FAILURE", "libnvrtc-builtins"),
])  # fmt: skip
def test_a_compiler_that_breaks(monkeypatch: pytest.MonkeyPatch, call: str, status: str, words: str) -> None:
    bindings = nvrtc_bindings()
    failed = (getattr(bindings.nvrtcResult, f"NVRTC_ERROR_{status}"),)
    monkeypatch.setattr(bindings, call, lambda *_: failed)
    with pytest.raises(ToolchainMissing, match=words):
        compile_cubin(SOURCE, "sm_90")


@pytest.mark.parametrize(("text", "words"), [
    (None, f"no nvdisasm.*{REMEDY}"),
    ("", f"nvdisasm does not run.*{REMEDY}"),
    ("#!/bin/sh\necho 'something else'", "it may not be nvdisasm"),
    ("#!/bin/sh\nexit 3", "it may not be nvdisasm"),
], ids=["none", "not a program", "of another version", "failing"])  # fmt: skip
def test_broken_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, words: str) -> None:
    pathfinder(monkeypatch, None if text is None else script(tmp_path, text))
    with pytest.raises(ToolchainMissing, match=words):
        disassembler()
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    with pytest.raises(ToolchainMissing, match=f"to find nvdisasm with.*{REMEDY}"):
        disassembler()


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = Path(script(folder, f"#!/bin/sh\n{text}"))
    monkeypatch.setattr(sass, "disassembler", lambda: InstalledTool(path, "1.2.3"))


@pytest.mark.parametrize(("text", "words"), [
    ("echo \"nvdisasm fatal : Value 'SM120' is not defined\" >&2; exit 1",
     f"nvdisasm 1.2.3 cannot disassemble code for sm_120: .*SM120.*{REMEDY}"),
    ("echo '/*0000*/ NOP ;'", "prints 1 instructions of 8 in a form this plugin does not read"),
], ids=["too old", "of another form"])  # fmt: skip
def test_disassembler_that_cannot_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str) -> None:
    use(monkeypatch, tmp_path, text)
    with pytest.raises(ToolchainMissing, match=words):
        sass.disassemble("sm_120", {"k": bytes(128)})


def test_same_code_is_disassembled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    for folder, opcode in (("one", "NOP"), ("other", "EXIT")):
        use(monkeypatch, tmp_path / folder, f"echo {opcode} $4 >> '{asked}'\necho '/*0000*/ {opcode} ;'")
        for arch in ("sm_90", "sm_80", "sm_90"):
            ((found,),) = sass.disassemble(arch, {"k": bytes(16)}).values()
            assert found.opcode == opcode
    assert asked.read_text().splitlines() == ["NOP SM90", "NOP SM80", "EXIT SM90", "EXIT SM80"]


def test_assembler_whose_log_lacks_a_kernel_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    silent, made = [1], compile_cubin(SOURCE, "sm_80")

    def compile_silently(source: KernelSource, arch: str) -> Compiled:
        silent[0] -= 1
        return made._replace(log="") if silent[0] >= 0 else made

    monkeypatch.setattr(compiler, "compile_cubin", compile_silently)
    assert compile_kernel(SOURCE, "sm_80").profile.spill_bytes == 0
    assert silent == [-1]
    silent[0] = 100
    with pytest.raises(CompileProblem, match=r"did not report on tile for sm_80"):
        compile_kernel(SOURCE, "sm_80")


def test_the_compiler_s_own_cache_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps no log; NVRTC 12 has none, and no option for it."""
    bindings, given = nvrtc_bindings(), list[bytes]()
    failed = (bindings.nvrtcResult.NVRTC_ERROR_COMPILATION,)
    monkeypatch.setattr(bindings, "nvrtcCompileProgram", lambda _, _count, options: given.extend(options) or failed)
    for version, kept_out in ((12, False), (13, True)):
        given.clear()
        monkeypatch.setattr(bindings, "nvrtcVersion", lambda one=version: (bindings.nvrtcResult.NVRTC_SUCCESS, one, 0))
        with pytest.raises(CompileError):
            compile_cubin(SOURCE, "sm_90")
        assert (b"--no-cache" in given) == kept_out


COMPILING = """
import os, signal, sys, threading
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import nvrtc_bindings

signal.signal(signal.SIGINT, signal.default_int_handler)
nvrtc_bindings()
try:
    print("compiles", flush=True)
    compile_cubin(KernelSource('extern "C" __global__ void k() {' + ";" * 8_000_000 + "}", "k"), "sm_90")
except KeyboardInterrupt:
    print("interrupted", flush=True)
threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
try:
    os.read(os.pipe()[0], 1)
except KeyboardInterrupt:
    sys.exit(7)
"""
"""Most of its time, which is more than a second, is the front end's, whose handler it is; then it waits."""


def test_an_interrupt_of_the_first_compilation_and_of_a_wait_behind_it_is_a_keyboard_interrupt() -> None:
    with subprocess.Popen([sys.executable, "-c", COMPILING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiles\n"
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait(30) == 7
