"""Stands in for nvcc where none is installed: a program that writes a cubin given to it, and notes its call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_gpuperf.compile import nvcc as nvcc_module
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

PROGRAM = """#!{python}
import pathlib, shutil, sys
here, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
if arguments == ["--version"]:
    print("Cuda compilation tools, release 13.0, V13.0.88")
    raise SystemExit
source = pathlib.Path(arguments[-1])
(here / "text.cu").write_text(source.read_text())
refusal = here / "refusal"
if refusal.exists() and "-E" not in arguments:
    print(refusal.read_text().replace("FILE", "<source>/" + source.name))
    raise SystemExit(2)
if "-E" in arguments:
    parts = [one.read_text() for one in (here / "header", source) if one.exists()]
    pathlib.Path(arguments[arguments.index("-o") + 1]).write_text("".join(parts))
    raise SystemExit
made = here / "made"
shutil.copy(made.with_suffix(".cubin"), arguments[arguments.index("-o") + 1])
shutil.copy(made.with_suffix(".ptx"), source.with_suffix(".ptx"))
print(made.with_suffix(".log").read_text())
"""


class StandInNvcc:
    """An nvcc that makes of every file what NVRTC made of one text for sm_90."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "nvcc"
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)

    def makes(self, text: str, *options: str) -> None:
        made = compile_cubin(KernelSource(text, "made", options=options), "sm_90")
        file = self.folder / "made"
        file.with_suffix(".cubin").write_bytes(made.cubin)
        file.with_suffix(".ptx").write_text(made.ptx)
        file.with_suffix(".log").write_text(made.log)

    def refuses(self, words: str) -> None:
        """``FILE`` in the ``words`` is the file as nvcc is told to call it."""
        (self.folder / "refusal").write_text(words)

    @property
    def text(self) -> str:
        """Of the file in its last call."""
        return (self.folder / "text.cu").read_text()


def found_as(monkeypatch: pytest.MonkeyPatch, find: Callable[[], str | None]) -> None:
    """From now on the search for nvcc ends with what ``find`` returns."""
    from cuda import pathfinder

    other = pathfinder.find_nvidia_binary_utility
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda one: find() if one == "nvcc" else other(one))
    monkeypatch.setattr("shutil.which", lambda name, *_, **__: find() if name == "nvcc" else None)
    forget_nvcc()


def need_nvcc() -> None:
    """Skip the test where none is installed."""
    try:
        nvcc_module.nvcc()
    except ToolchainMissing as problem:
        pytest.skip(str(problem))


def forget_nvcc() -> None:
    """Which one there is, and what it made."""
    for kept in (nvcc_module.nvcc, nvcc_module.toolchain, nvcc_module._compiled, nvcc_module._preprocessed):
        kept.cache_clear()
