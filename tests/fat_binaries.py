"""Fat binaries and wheels made of cubins at hand, as nvcc and pip would make them."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

MADE_BY_NVCC = Path(__file__).parent / "unit" / "compile" / "machine_code" / "fat_binaries"
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_ELF = 2
_LINUX_64 = 0x11


def fat_binary(cubins: Iterable[tuple[str, bytes]]) -> bytes:
    """A fat binary with these cubins, by architecture, as they are."""
    entries = b""
    for arch, cubin in cubins:
        payload = cubin + bytes(-len(cubin) % 8)
        number = int(arch.removeprefix("sm_"))
        entries += _ENTRY.pack(_ELF, 0x101, _ENTRY.size, len(payload), 0, 0, 8, 1, number, 0, 0, _LINUX_64, 0, 0)
        entries += payload
    return _HEADER.pack(0xBA55ED50, 1, _HEADER.size, len(entries)) + entries


def cubin_of(text: str, name: str, arch: str = "sm_90", *options: str) -> bytes:
    """The cubin of a source."""
    return compile_kernel(KernelSource(text, name, options=options), arch).cubin


def relocatable(text: str, arch: str = "sm_90", *options: str) -> bytes:
    """The cubin of a source as nvcc makes it with ``-rdc=true``: not linked."""
    program = KernelSource(text, "k", options=("--relocatable-device-code=true", *options))
    return compile_cubin(program, arch).cubin


def wheel(path: Path, members: Mapping[str, bytes]) -> Path:
    """A wheel with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path
