"""Cubins out of what is already built: fat binaries, and the libraries, objects, archives and programs that hold them.

NVIDIA's cuobjdump reads the container and its compression.  It may be given a stranger's file: its time and what it
writes have limits, and each cubin is read as any other file of a stranger is.
"""

from __future__ import annotations

import mmap
import re
import struct
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.machine_code.cubin import EM_CUDA
from pytest_gpuperf.compile.toolkit import container_reader

_FATBIN = struct.pack("<I", 0xBA55ED50)
"""How each fat binary begins, wherever in a file it lies."""
_ELF, _ARCHIVE = b"\x7fELF", b"!<arch>\n"
_MACHINE = slice(18, 20)
"""Of an ELF file's header."""
LIMIT_S = 300.0
"""The largest library that was seen takes 0.5 s for each 140 MB of its cubins (docs/results/audit.md)."""
MOST_BYTES = 16 << 30
"""Of the cubins of one file."""
_LOOK_S = 0.1
"""Between two looks at how much was written."""
_NAMED = re.compile(r"\.(sm_\d+[af]?)\.cubin$")
_NOTHING_THERE = ("does not contain device code", "No ELF file found")


class FoundCubin(NamedTuple):
    """One cubin of a file."""

    path: Path
    arch: str
    """``sm_90a`` as the container names it; empty of a bare cubin, which says ``sm_90`` itself."""


def begins_as_container(head: bytes) -> bool:
    """Whether a file with these first bytes may hold cubins: a fat binary, an ELF file or an archive."""
    return head.startswith((_FATBIN, _ELF, _ARCHIVE))


def _may_hold_cubins(file: Path) -> bool:
    """Whether there is a cubin or a fat binary in the file.  Raises ``OSError``."""
    with file.open("rb") as opened:
        head = opened.read(64)
        if not begins_as_container(head) or is_cubin(head):
            return is_cubin(head)
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(_FATBIN) >= 0


def is_cubin(head: bytes) -> bool:
    """Whether a file that begins so is a bare cubin."""
    return head.startswith(_ELF) and head[_MACHINE] == struct.pack("<H", EM_CUDA)


def extracted(file: Path, folder: Path, place: str) -> list[FoundCubin]:
    """The cubins of ``file``, in its own order; those of a container are put into the empty ``folder``.

    ``place`` is what errors call the file.  There is none where the file has no machine code for GPUs, as
    one that has PTX alone.
    Raises ``BadContainer``, ``ToolchainMissing``, ``OSError``.
    """
    if not _may_hold_cubins(file):
        return []
    with file.open("rb") as opened:
        if is_cubin(opened.read(64)):
            return [FoundCubin(file, "")]
    _run(file.resolve(), folder, place)
    found = sorted(folder.iterdir(), key=lambda path: (_number(path), path.name))
    return [FoundCubin(path, name[1] if (name := _NAMED.search(path.name)) else "") for path in found]


def cubins_by_arch(content: bytes, place: str) -> dict[str, list[bytes]]:
    """The cubins of a container that is at hand as bytes, by architecture.  Raises as ``extracted``."""
    with scratch_folder("gpuperf-fatbin-") as scratch:
        file, folder = Path(scratch, "content"), Path(scratch, "cubins")
        file.write_bytes(content)
        folder.mkdir()
        by_arch: dict[str, list[bytes]] = {}
        for path, arch in extracted(file, folder, place):
            by_arch.setdefault(arch, []).append(path.read_bytes())
        return by_arch


def _run(file: Path, folder: Path, place: str) -> None:
    """Have cuobjdump put the cubins of the file into the folder."""
    tool = container_reader()
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [str(tool.path), "-xelf", "all", str(file)], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as problem:
            raise ToolchainMissing(f"{tool.path} does not run ({problem})") from problem
        try:
            _wait(process, folder, place)
        finally:
            process.kill()
            process.wait()
    said = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode and not any(words in said for words in _NOTHING_THERE):
        reason = (said.strip().splitlines() or ["no reason given"])[-1].rpartition(" : ")[2]
        reason = reason.replace(f" in '{file}'", "")
        raise BadContainer(f"{place}: cuobjdump {tool.version} cannot read it: {reason}")


def _wait(process: subprocess.Popen[bytes], folder: Path, place: str) -> None:
    """Returns once it has ended.  Raises ``BadContainer`` where that takes too long or fills the disk."""
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise BadContainer(f"{place}: cuobjdump did not end within {LIMIT_S:g} s: is the file whole?") from None
        if sum(path.stat().st_size for path in folder.iterdir()) > MOST_BYTES:
            raise BadContainer(f"{place}: its cubins are larger than {MOST_BYTES >> 30} GB: name smaller files")
        if process.returncode is not None:
            return


def _number(path: Path) -> int:
    """The place in its container of ``library.12.sm_90.cubin``."""
    part = path.name.split(".")[-3:-2]
    return int(part[0]) if part and part[0].isdigit() else 0
