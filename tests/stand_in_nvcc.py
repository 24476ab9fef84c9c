"""Stands in for nvcc where none is installed: a program that writes a cubin given to it, and notes its call."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_gpuperf.compile.nvcc import nvcc
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

PROGRAM = """#!{python}
import json, pathlib, shutil, sys
here, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
if arguments == ["--version"]:
    print("Cuda compilation tools, release 13.0, V13.0.88")
    raise SystemExit
if arguments == ["--list-gpu-code"]:
    print("sm_80\\nsm_90")
    raise SystemExit
source = pathlib.Path(arguments[-1])
(here / "call.json").write_text(json.dumps({{"arguments": arguments, "text": source.read_text()}}))
refusal = here / "refusal"
if refusal.exists():
    print(refusal.read_text().replace("FILE", "<source>/" + source.name))
    raise SystemExit(2)
asked = "gpuperf_instance" in source.read_text() and (here / "asked.cubin").exists()
made = here / ("asked" if asked else "made")
shutil.copy(made.with_suffix(".cubin"), arguments[arguments.index("-o") + 1])
shutil.copy(made.with_suffix(".ptx"), source.with_suffix(".ptx"))
listed = pathlib.Path(arguments[arguments.index("-MF") + 1])
names = [name.replace(" ", "\\ ") for name in json.loads((here / "reads.json").read_text())]
listed.write_text(" : ".join([str(source)] * 2) + " " + " \\\\\\n".join(names) + "\\n")
print(made.with_suffix(".log").read_text())
"""


class StandInNvcc:
    """An nvcc that makes of every file what NVRTC made of one text for sm_90."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "nvcc"
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        self.reads()

    def makes(self, text: str, *options: str, asked: bool = False) -> None:
        """``asked``: only of a file that asks for an instance."""
        made = compile_cubin(KernelSource(text, "made", options=options), "sm_90")
        file = self.folder / ("asked" if asked else "made")
        file.with_suffix(".cubin").write_bytes(made.cubin)
        file.with_suffix(".ptx").write_text(made.ptx)
        file.with_suffix(".log").write_text(made.log)

    def reads(self, *headers: Path) -> None:
        """From now on it says that it read these."""
        (self.folder / "reads.json").write_text(json.dumps([str(header) for header in headers]))

    def refuses(self, words: str) -> None:
        """``FILE`` in the ``words`` is the file as nvcc is told to call it."""
        (self.folder / "refusal").write_text(words)

    @property
    def called(self) -> bool:
        """Whether it was, since ``forget``."""
        return (self.folder / "call.json").exists()

    def forget(self) -> None:
        (self.folder / "call.json").unlink(missing_ok=True)

    @property
    def text(self) -> str:
        """Of the file in its last call."""
        called: dict[str, str] = json.loads((self.folder / "call.json").read_text())
        return called["text"]


def found_as(monkeypatch: pytest.MonkeyPatch, find: Callable[[], str | None]) -> None:
    """From now on the search for nvcc ends with what ``find`` returns."""
    import cuda.pathfinder

    other = cuda.pathfinder.find_nvidia_binary_utility
    monkeypatch.setattr(
        cuda.pathfinder, "find_nvidia_binary_utility", lambda name: find() if name == "nvcc" else other(name)
    )
    monkeypatch.setattr("shutil.which", lambda name, *_, **__: find() if name == "nvcc" else None)
    nvcc.cache_clear()
