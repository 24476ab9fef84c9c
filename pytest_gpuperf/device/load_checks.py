"""The check that a cubin has to pass before it is loaded.  Pure."""

from __future__ import annotations

import hashlib
import re

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.cubin.cubin_reader import read_cubin
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.model.evidence import KernelBinary


def check_loadable(binary: KernelBinary, arch: str, sha256: str | None = None) -> None:
    """Raise ``LoadError`` unless the cubin is one for a GPU of ``arch``, holds the kernel, and is the one expected.

    ``sha256`` in hex is what a baseline has on record; None for what was compiled just now.
    """
    found = hashlib.sha256(binary.cubin).hexdigest()
    if sha256 is not None and found != sha256:
        raise LoadError(
            f"{binary.name}: the SHA-256 of its cubin is {found}, on record is {sha256}: the file was changed or "
            f"damaged. Restore it from version control, or record the baseline anew"
        )
    try:
        cubin = read_cubin(binary.cubin)
    except BadCubin as problem:
        raise LoadError(f"{binary.name}: its cubin cannot be loaded: {problem}") from problem
    if cubin.arch != arch:
        raise LoadError(f"{binary.name} was compiled for {cubin.arch}, and this GPU is {arch}")
    if re.sub("[af]$", "", binary.arch) != cubin.arch:
        raise LoadError(f"{binary.name}: its cubin is for {cubin.arch}, and its record says {binary.arch}")
    if binary.symbol not in cubin.kernels:
        raise LoadError(f"{binary.name}: its cubin has no kernel {binary.symbol}; it has {', '.join(cubin.kernels)}")
