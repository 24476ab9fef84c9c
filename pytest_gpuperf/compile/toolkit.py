"""Finding NVRTC, nvdisasm and the CUDA headers: plain wheels first, then an installed toolkit.

``cuda.pathfinder`` does the looking, as it does for CuPy.  Nothing here needs a driver.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import STATIC_EXTRA, ToolchainMissing

_VERSION_LIMIT_S = 20


class Disassembler(NamedTuple):
    """The nvdisasm in use."""

    path: Path
    version: str
    """``13.5.37``"""


@functools.cache
def nvrtc_bindings() -> ModuleType:
    """``cuda.bindings.nvrtc`` with its library loaded.  Raises ``ToolchainMissing``."""
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415 an extra
    except ImportError as problem:
        raise ToolchainMissing(
            f"no CUDA compiler: the package cuda-bindings cannot be imported ({problem}). Install it: {STATIC_EXTRA}"
        ) from problem
    try:
        status, _major, _minor = nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as problem:  # what the bindings raise if there is no library to load
        raise ToolchainMissing(
            f"no CUDA compiler: NVRTC's library was not found ({_first_line(problem)}). "
            f"Install it: {STATIC_EXTRA}, or point CUDA_PATH at a CUDA toolkit"
        ) from problem
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainMissing(
            f"NVRTC is there but does not tell its version ({status.name}). Reinstall: {STATIC_EXTRA}"
        )
    module: ModuleType = nvrtc
    return module


@functools.cache
def disassembler() -> Disassembler:
    """Path and version of nvdisasm.  Raises ``ToolchainMissing``."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility  # noqa: PLC0415 an extra
    except ImportError as problem:
        raise ToolchainMissing(
            f"no cuda.pathfinder to find nvdisasm with ({problem}). Install: {STATIC_EXTRA}"
        ) from problem
    found = find_nvidia_binary_utility("nvdisasm")
    if found is None:
        raise ToolchainMissing(
            f"no nvdisasm: static evidence reads the machine code with it. "
            f"Install it: {STATIC_EXTRA}, or put a CUDA toolkit's bin folder on PATH"
        )
    return Disassembler(Path(found), _version(Path(found)))


def _version(path: Path) -> str:
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=_VERSION_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ToolchainMissing(
            f"{path} does not run ({_first_line(problem)}). Install another: {STATIC_EXTRA}"
        ) from problem
    version = re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout)
    if done.returncode != 0 or version is None:
        raise ToolchainMissing(f"{path} does not tell its version: is it nvdisasm? Install it: {STATIC_EXTRA}")
    return version[1]


@functools.cache
def toolkit_folders() -> tuple[Path, ...]:
    """Folders of the CUDA headers that are installed: the runtime's, then libcu++ and CCCL.  May be empty."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory  # noqa: PLC0415 an extra
    except ImportError:
        return ()
    found: list[str | None] = [find_nvidia_header_directory(library) for library in ("cudart", "cccl")]
    return tuple(dict.fromkeys(Path(folder) for folder in found if folder is not None and Path(folder).is_dir()))


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
