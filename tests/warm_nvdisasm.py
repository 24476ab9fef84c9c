"""An nvdisasm that starts warm: one for each architecture sets itself up, and forks for whatever is disassembled.

Its start takes a quarter of a second of a core, a fork a hundredth, and tests ask for hundreds of disassemblies.
Without a C compiler, or with an nvdisasm that opens its file in another way, each of them starts a process, as for a
user; so does whatever a fork fails for, and says why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock

from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.toolkit import InstalledTool, disassembler

FOLDER = "FORK_SERVER_FOLDER"
SOURCE = Path(__file__).with_name("fork_server.c")
LIMIT_S = 60
cold = sass.run_nvdisasm.__wrapped__
"""Starts a process for each text."""
NOP = bytes.fromhex("1879000000000000 0000000000c00f00")


@contextlib.contextmanager
def servers() -> Iterator[Mapping[str, str]]:
    """What tells processes of this session of its servers, which end with this process: variables to set."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-warm-") as folder:
        yield {FOLDER: folder, "FORK_SERVER_OWNER": str(os.getpid())}


def use() -> None:
    """Let this process, and those forked off it, ask them.  Raises ``ToolchainMissing``."""
    real = disassembler()

    @functools.lru_cache(maxsize=sass.KEPT)
    def printed(tool: InstalledTool, arch: str, code: bytes) -> str:
        return (tool == real and forked(tool.path, arch, code)) or cold(tool, arch, code)

    sass.run_nvdisasm = printed


def forked(program: Path, arch: str, code: bytes) -> str:
    """What a fork prints of the code; nothing if it fails or there is no server."""
    folder = os.environ.get(FOLDER, "")
    if not folder:
        return ""
    try:
        with socket.socket(socket.AF_UNIX) as server, tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(code)
            file.flush()
            server.settimeout(LIMIT_S)
            server.connect(str(server_of(program, arch, Path(folder))))
            server.sendall(file.name.encode())
            answer = b"".join(iter(lambda: server.recv(1 << 20), b""))
    except OSError:
        return ""
    return answer[:-1].decode() if answer[-1:] == b"\1" else ""


def server_of(program: Path, arch: str, folder: Path) -> Path:
    """The socket of an architecture's server; what cannot be connected to if it does not start."""
    place = folder / arch
    if not place.exists():
        with FileLock(folder / "lock"):
            if not place.exists():
                with contextlib.suppress(OSError, subprocess.SubprocessError):
                    start(program, arch, place)
                if not place.exists():
                    place.touch()  # nobody tries again
    return place


def start(program: Path, arch: str, place: Path) -> None:
    library, nop = place.with_name("fork_server.so"), place.with_name("nop")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if not library.exists():
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, timeout=LIMIT_S, **quiet)
        nop.write_bytes(NOP)
    environment = {**os.environ, "LD_PRELOAD": str(library), "FORK_SERVER_SOCKET": str(place)}
    command = [str(program), "-raw", "-ndf", "-b", arch.replace("sm_", "SM"), str(nop)]
    subprocess.run(command, cwd=place.parent, env=environment, check=True, timeout=LIMIT_S, **quiet)
