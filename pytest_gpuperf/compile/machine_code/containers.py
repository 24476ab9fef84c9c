"""Cubins out of fat binaries, and of the libraries, objects and archives that hold them.

NVIDIA's cuobjdump reads a container and its compression, within a time limit; each cubin is read as any other file of a
stranger is.
"""

from __future__ import annotations

import mmap
import re
import struct
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.machine_code.cubin import EM_CUDA
from pytest_gpuperf.compile.toolkit import container_reader

_FATBIN = struct.pack("<I", 0xBA55ED50)
"""How each fat binary begins, wherever in a file it lies."""
_ELF, _ARCHIVE = b"\x7fELF", b"!<arch>\n"
_MACHINE = slice(18, 20)
"""Of an ELF file's header."""
HEAD = 64
"""Bytes of a file that tell what it is."""
LIMIT_S = 300.0
"""The largest library that was seen takes 0.5 s for each 140 MB of its cubins."""
_NAMED = re.compile(r"\.(?P<number>\d+)\.(?P<arch>sm_\d+[af]?)\.cubin$")
_NOTHING_THERE = ("does not contain device code", "No ELF file found")


FoundCubin = tuple[Path, str]
"""One cubin of a file: its path, and ``sm_90a`` as the container names it; empty of a bare cubin, which says it."""


def begins_as_container(head: bytes) -> bool:
    """Whether a file with these first bytes may hold cubins: a fat binary, an ELF file or an archive."""
    return head.startswith((_FATBIN, _ELF, _ARCHIVE))


def is_cubin(head: bytes) -> bool:
    """Whether a file that begins so is a bare cubin."""
    return head.startswith(_ELF) and head[_MACHINE] == struct.pack("<H", EM_CUDA)


def extracted(file: Path, folder: Path, place: str) -> list[FoundCubin]:
    """The cubins of ``file``, in its own order; those of a container are put into the empty ``folder``.

    ``place`` is what errors call the file.  There is none where the file has no machine code for GPUs, as
    one that has PTX alone.
    Raises ``BadContainer``, ``ToolchainMissing``, ``OSError``.
    """
    with file.open("rb") as opened:
        head = opened.read(HEAD)
        if is_cubin(head):
            return [(file, "")]
        if not begins_as_container(head):
            return []
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(_FATBIN) < 0:
                return []
    _take_apart(file.resolve(), folder, place)
    names = ((_NAMED.search(path.name), path) for path in folder.iterdir())
    found = sorted((int(name["number"]), name["arch"], path) for name, path in names if name is not None)
    return [(path, arch) for _, arch, path in found]


def cubins_by_arch(content: bytes, place: str) -> dict[str, list[bytes]]:
    """The cubins of a container that is at hand as bytes, by architecture.  Raises as ``extracted``."""
    with TemporaryDirectory(prefix="gpuperf-fatbin-") as scratch:
        file, folder = Path(scratch, "content"), Path(scratch, "cubins")
        file.write_bytes(content)
        folder.mkdir()
        by_arch: dict[str, list[bytes]] = {}
        for path, arch in extracted(file, folder, place):
            by_arch.setdefault(arch, []).append(path.read_bytes())
        return by_arch


def _take_apart(file: Path, folder: Path, place: str) -> None:
    """Have cuobjdump put the cubins of the file into the folder."""
    tool = container_reader()
    try:
        done = subprocess.run(
            [str(tool.path), "-xelf", "all", str(file)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as problem:
        raise BadContainer(
            f"{place}: cuobjdump did not end within {LIMIT_S:g} s: check that the file is complete"
        ) from problem
    except OSError as problem:
        raise ToolchainMissing(f"{tool.path} does not run ({problem})") from problem
    if done.returncode and not any(text in done.stdout for text in _NOTHING_THERE):
        reason = (done.stdout.strip().splitlines() or ["no reason given"])[-1].rpartition(" : ")[2]
        reason = reason.replace(f" in '{file}'", "")
        raise BadContainer(f"{place}: cuobjdump {tool.version} cannot read it: {reason}")
