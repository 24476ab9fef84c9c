"""``__constant__`` and ``__device__`` variables of a kernel's module: what a test fills them with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cubin.cubin_reader import module_variables
from pytest_gpuperf.compile.cubin.symbol_names import plain_name
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import LoadedKernel
from pytest_gpuperf.model.evidence import KernelBinary

_SHOWN_DIGITS = 16
_ENTRY = re.compile(r" constant (\S+)=[0-9a-f]+")


class ModuleVariables:
    """Contents of a kernel's variables, by their symbols; the same for whichever of its machine codes is loaded."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def set(self, binary: KernelBinary, name: str, value: Any, loaded: LoadedKernel | None) -> None:
        """Take the content of one variable, and write it if the kernel is loaded.

        Raises ``LaunchError`` for a wrong name, type or size.
        """
        sizes = module_variables(binary.cubin)
        symbol = _symbol(binary.name, name, sizes)
        if not isinstance(value, np.ndarray | np.generic) or value.nbytes != sizes[symbol]:
            given = f"{value.nbytes} bytes" if isinstance(value, np.ndarray | np.generic) else type(value).__name__
            raise LaunchError(
                f"{binary.name}: set_constant({name!r}) was given {given}: {name} takes a NumPy array or scalar of "
                f"{sizes[symbol]} bytes, of its type and length"
            )
        self._contents[symbol] = np.ascontiguousarray(value).tobytes()
        if loaded is not None:
            loaded.write(symbol, self._contents[symbol])

    def fill(self, loaded: LoadedKernel, binary: KernelBinary) -> None:
        """Write all of them into the module of ``loaded``; one that the ``binary`` does not have is not used by it."""
        sizes = module_variables(binary.cubin) if self._contents else {}
        for symbol, content in self._contents.items():
            if symbol in sizes:
                loaded.write(symbol, content)

    @property
    def entries(self) -> str:
        """`` constant weights=0123456789abcdef`` for each, by symbol: the part of the identity that they are."""
        digests = {symbol: hashlib.sha256(content).hexdigest() for symbol, content in sorted(self._contents.items())}
        return "".join(f" constant {symbol}={digest[:_SHOWN_DIGITS]}" for symbol, digest in digests.items())

    def check_other(self, binary: KernelBinary, recorded_launch: str) -> None:
        """See that another machine code, launched as its identity says, can be filled as it was.

        Raises ``LaunchError`` if it needs a variable that is not set now, or one of another size.
        """
        recorded = _ENTRY.findall(recorded_launch)
        sizes = module_variables(binary.cubin) if recorded or self._contents else {}
        for symbol in recorded:
            if symbol in sizes and symbol not in self._contents:
                raise LaunchError(f"its variable {plain_name(symbol)} was set when it was recorded, and is not now")
        for symbol, content in self._contents.items():
            if sizes.get(symbol, len(content)) != len(content):
                raise LaunchError(
                    f"its variable {plain_name(symbol)} has {sizes[symbol]} bytes, and {len(content)} are set now"
                )


def _symbol(kernel: str, name: str, sizes: Mapping[str, int]) -> str:
    found = [symbol for symbol in sizes if name in (symbol, plain_name(symbol))]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{plain_name(symbol)} ({size} bytes)" for symbol, size in sorted(sizes.items()))
    raise LaunchError(
        f"{kernel}: set_constant({name!r}): its machine code has no __constant__ or __device__ variable of that name; "
        f"it has {there or 'none'}. The compiler may leave out one that no kernel uses"
    )
