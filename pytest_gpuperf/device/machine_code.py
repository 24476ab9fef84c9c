"""``MachineCode``: a kernel compiled for every target, loaded with what a test fills its module's variables with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pytest_gpuperf.compile.machine_code.cubin import module_variables
from pytest_gpuperf.compile.machine_code.symbols import readable
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Device, LoadedKernel
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile

_SHOWN_DIGITS = 16
_ENTRY = re.compile(r" constant (\S+)=[0-9a-f]+")


class MachineCode:
    """One kernel, compiled for every target, and loaded when it is first launched; how is for a subclass to say."""

    def __init__(
        self, binaries: Mapping[str, KernelBinary], *, device: Device, native: str | None,
        targets: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """``binaries`` by architecture, at least one."""
        self.binaries = dict(binaries)
        self.device = device
        self.native = native
        """Architecture that runs here; None without a GPU."""
        self.targets = tuple(binaries if targets is None else targets)
        """Architectures whose static evidence counts."""
        self.variables = ModuleVariables()
        """What ``set_constant`` was given."""

    @property
    def arch(self) -> str:
        """This GPU's architecture; without a GPU, the first target."""
        return self.native or self.targets[0]

    @property
    def binary(self) -> KernelBinary:
        """The machine code for ``arch``."""
        return self.binaries[self.arch]

    @property
    def name(self) -> str:
        """As the test gave it, with template arguments."""
        return self.binary.name

    @property
    def profiles(self) -> dict[str, StaticProfile]:
        """Static evidence by target architecture."""
        return {arch: self.binaries[arch].profile for arch in self.targets}

    @property
    def profile(self) -> StaticProfile:
        """Static evidence for ``arch``."""
        return self.binary.profile

    @property
    def registers(self) -> int:
        """32-bit registers per thread on ``arch``."""
        return self.profile.registers

    @cached_property
    def loaded(self) -> LoadedKernel:
        """The kernel in a module on the device, its variables filled.  Raises ``LoadError``."""
        loaded = self.device.load(self.binary)
        self.variables.fill(loaded, self.binary)
        return loaded


class ModuleVariables:
    """Contents of a kernel's ``__constant__`` and ``__device__`` variables by symbol, for each machine code loaded."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def set(self, binary: KernelBinary, name: str, value: Any, loaded: LoadedKernel | None) -> None:
        """Take the content of one variable, and write it if the kernel is loaded.

        Raises ``LaunchError`` for a wrong name, type or size.
        """
        sizes = module_variables(binary.cubin)
        found = [symbol for symbol in sizes if name in (symbol, readable(symbol))]
        if len(found) != 1:
            there = ", ".join(f"{readable(symbol)} ({size} bytes)" for symbol, size in sorted(sizes.items()))
            raise LaunchError(
                f"{binary.name}: set_constant({name!r}): its machine code has no __constant__ or __device__ variable "
                f"of that name; it has {there or 'none'}. The compiler may leave out one that no kernel uses"
            )
        symbol = found[0]
        if not isinstance(value, np.ndarray | np.generic) or value.nbytes != sizes[symbol]:
            library, size = type(value).__module__.partition(".")[0], getattr(value, "nbytes", "no")
            raise LaunchError(
                f"{binary.name}: set_constant({name!r}) was given {library}.{type(value).__name__} of {size} bytes: "
                f"it takes a NumPy array or scalar of {sizes[symbol]} bytes"
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
        """Raise ``LaunchError`` unless another machine code, launched as its identity says, can be filled as it was."""
        names = {*_ENTRY.findall(recorded_launch), *self._contents}
        sizes = module_variables(binary.cubin) if names else {}
        for symbol in sorted(names & sizes.keys()):
            given = len(self._contents.get(symbol, b""))
            if given != sizes[symbol]:
                raise LaunchError(
                    f"its variable {readable(symbol)} of {sizes[symbol]} bytes was set when it was recorded, and "
                    f"{given or 'no'} bytes are set now"
                )
