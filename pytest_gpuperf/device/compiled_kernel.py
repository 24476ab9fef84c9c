"""``CompiledKernel``: a kernel compiled for every target, loaded with what a test fills its module's variables with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from pytest_gpuperf.compile.machine_code.cubin import module_variables
from pytest_gpuperf.compile.machine_code.symbols import readable
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Device, LoadedKernel
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile

_SHOWN_DIGITS = 16
_ENTRY = re.compile(r" constant (\S+)=[0-9a-f]+")


class CompiledKernel:
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
        self.variables: dict[str, bytes] = {}
        """What ``set_constant`` was given for ``__constant__`` and ``__device__`` variables, by symbol."""

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
        self.fill(loaded, self.binary)
        return loaded

    def fill(self, loaded: LoadedKernel, binary: KernelBinary) -> None:
        """Write all variables into the module of ``loaded``; one that its ``binary`` lacks is not used by it."""
        sizes = module_variables(binary.cubin) if self.variables else {}
        for symbol, content in self.variables.items():
            if symbol in sizes:
                loaded.write(symbol, content)

    @property
    def variable_entries(self) -> str:
        """`` constant weights=0123456789abcdef`` for each, by symbol: the part of the identity that they are."""
        digests = {symbol: hashlib.sha256(content).hexdigest() for symbol, content in sorted(self.variables.items())}
        return "".join(f" constant {symbol}={digest[:_SHOWN_DIGITS]}" for symbol, digest in digests.items())

    def check_variables(self, binary: KernelBinary, recorded_launch: str) -> None:
        """Raise ``LaunchError`` unless another machine code, launched as its identity says, can be filled as it was."""
        names = {*_ENTRY.findall(recorded_launch), *self.variables}
        sizes = module_variables(binary.cubin) if names else {}
        for symbol in sorted(names & sizes.keys()):
            given = len(self.variables.get(symbol, b""))
            if given != sizes[symbol]:
                raise LaunchError(
                    f"its variable {readable(symbol)} of {sizes[symbol]} bytes was set in the recording, but "
                    f"{given or 'no'} bytes are set now"
                )
