"""Finding NVRTC, nvdisasm, cuobjdump and the CUDA headers: plain wheels first, then an installed toolkit.

``cuda.pathfinder`` does the looking, as it does for CuPy.  Nothing here needs a driver.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import STATIC_EXTRA, ToolchainMissing

_VERSION_LIMIT_S = 20
_INSTALL_TOOL = f"Install it: {STATIC_EXTRA}, or put a CUDA toolkit's bin folder on PATH"


class InstalledTool(NamedTuple):
    """A program of the toolkit."""

    path: Path
    version: str
    """``13.5.37``"""


@functools.cache
def nvrtc_bindings() -> ModuleType:
    """``cuda.bindings.nvrtc`` with its library loaded, and kept from handling Ctrl-C.  Raises ``ToolchainMissing``."""
    module = load_bindings("NVRTC", "nvrtcVersion", f"{STATIC_EXTRA}, or point CUDA_PATH at a CUDA toolkit")
    loaded = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc")
    for builtins in Path(loaded.abs_path or os.sep).parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))  # NVRTC asks for it by name alone, and a folder of CUDA_PATH is not searched
    leave_interrupts_alone(module)
    return module


def load_bindings(name: str, first_call: str, remedy: str) -> ModuleType:
    """The module of ``cuda.bindings`` for a library, which the first call loads.  Raises ``ToolchainMissing``."""
    try:
        module = importlib.import_module(f"cuda.bindings.{name.lower()}")
        getattr(module, first_call)()
    except (ImportError, RuntimeError, OSError) as problem:  # the last two are of bindings that find no library
        raise ToolchainMissing(
            f"no {name}: cuda-bindings and {name} cannot be loaded ({_first_line(problem)}). Install it: {remedy}"
        ) from problem
    return module


def leave_interrupts_alone(nvrtc: ModuleType) -> None:
    """Get the first compilation over, in milliseconds: in that alone NVRTC's front end handles Ctrl-C.

    Its handler ends the process with status 4 and no word.  What it gives back does not interrupt calls that wait.
    """
    status, handle = nvrtc.nvrtcCreateProgram(b"", b"nothing.cu", 0, [], [])
    if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
        nvrtc.nvrtcCompileProgram(handle, 1, [b"--define-macro=1=1"])  # no name of a macro
        nvrtc.nvrtcDestroyProgram(handle)
    signal.siginterrupt(signal.SIGINT, True)


@functools.cache
def disassembler() -> InstalledTool:
    """Path and version of nvdisasm.  Raises ``ToolchainMissing``."""
    return find_tool("nvdisasm", "no nvdisasm: static evidence reads the machine code with it", _INSTALL_TOOL)


@functools.cache
def container_reader() -> InstalledTool:
    """Path and version of cuobjdump.  Raises ``ToolchainMissing``."""
    return find_tool("cuobjdump", "no cuobjdump: libraries and fat binaries are taken apart with it", _INSTALL_TOOL)


def find_tool(name: str, missing: str, remedy: str) -> InstalledTool:
    """Path and version of a program: of the environment's wheels, else of a toolkit, else on ``PATH``.

    Raises ``ToolchainMissing``: what is ``missing``, and the ``remedy``.
    """
    try:
        from cuda.pathfinder import find_nvidia_binary_utility  # noqa: PLC0415 an extra
    except ImportError as problem:
        raise ToolchainMissing(f"no cuda.pathfinder to find {name} with ({problem}). {_INSTALL_TOOL}") from problem
    path = find_nvidia_binary_utility(name) or shutil.which(name)
    if path is None:
        raise ToolchainMissing(f"{missing}. {remedy}")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_VERSION_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ToolchainMissing(f"{path} does not run ({_first_line(problem)}). {remedy}") from problem
    version = re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout)
    if done.returncode != 0 or version is None:
        raise ToolchainMissing(f"{path} prints no version, so it may not be {name}. {remedy}")
    return InstalledTool(Path(path), version[1])


@functools.cache
def toolkit_folders() -> tuple[Path, ...]:
    """Folders of the CUDA headers that are installed: the runtime's, then libcu++ and CCCL.  May be empty."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory  # noqa: PLC0415 an extra
    except ImportError:
        return ()
    found: list[str | None] = [find_nvidia_header_directory(library) for library in ("cudart", "cccl")]
    # links such as /usr/local/cuda resolved, as includes.py has headers behind ".."
    return tuple(dict.fromkeys(Path(folder).resolve() for folder in found if folder and Path(folder).is_dir()))


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
