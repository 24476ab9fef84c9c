"""``gpuperf init``: what a repository needs for its first gated kernel.  Nothing is overwritten."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.cli.doctor_command import installed
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.process.repository import checkout_around

FILES = Path(__file__).with_name("init_files")
"""What is written and said."""
ATTRIBUTES = b"baselines/**/*.cubin.z binary"
NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
SETTINGS = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files by which pytest takes a folder for its root."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="default: the current folder"
    )


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Write what is not there yet below the folder, and say the next command; returns the exit status, 0.

    Raises ``GpuperfError`` and ``OSError``.
    """
    folder: Path = parsed.folder
    if not folder.is_dir():
        raise GpuperfError(f"{folder} is no folder: name the one of your repository")
    sample = folder / "kernels"
    files = {sample / "axpy.cu": _text("axpy.cu"), sample / "test_axpy.py": _text("test_axpy.txt")}
    if not any((folder / name).exists() for name in SETTINGS):
        files[folder / "pytest.ini"] = "[pytest]\ntestpaths = .\n"
    files[folder / ".github" / "workflows" / "gpuperf.yml"] = _text("gpuperf.yml")
    if nvrtc := next(filter(None, map(installed, NVRTC)), ""):
        files[folder / "gpuperf-constraints.txt"] = f"nvidia-cuda-nvrtc=={nvrtc}\n"
    for path, text in files.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
            write(f"written  {path.relative_to(folder)}\n")
        else:
            write(f"kept     {path.relative_to(folder)}\n")
    _attributes(folder / ".gitattributes", write)
    here = folder.resolve()
    top, note = checkout_around(here), ""
    if top not in (None, here):
        note = _text("elsewhere.txt").format(top=top, inside=json.dumps(here.relative_to(top).as_posix()))
    write(f"\n{note}{_text('next.txt').format(git='' if top else 'git init && ')}")
    return 0


def _text(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _attributes(path: Path, write: Callable[[str], object]) -> None:
    """Add the line that baselines need; what is there stays, byte for byte."""
    before = path.read_bytes() if path.exists() else b""
    if ATTRIBUTES in before.splitlines():
        write(f"kept     {path.name}\n")
        return
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    write_whole(path, before + joint + ATTRIBUTES + b"\n")
    write(f"{'added to' if before else 'written '} {path.name}\n")
