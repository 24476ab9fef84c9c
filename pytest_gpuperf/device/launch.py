"""``Kernel`` and ``Launch``: what a test holds in its hands.

A launch is validated where it is formed, on any machine: the number of arguments, their sizes and types
against the kernel's parameters, the grid, the block and the shared memory against the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pytest_gpuperf.device.arguments import describe_argument, prepare
from pytest_gpuperf.device.errors import LaunchError
from pytest_gpuperf.device.interface import Device, Dim3, LoadedKernel
from pytest_gpuperf.evidence import Identity, KernelBinary, Occupancy, StaticProfile, StaticRecord


class Kernel:
    """One kernel, compiled for every target and loaded when it is first launched."""

    def __init__(
        self,
        binaries: Mapping[str, KernelBinary],
        *,
        device: Device,
        native: str | None,
        targets: Sequence[str],
        ptx: Callable[[str], str],
    ) -> None:
        self.binaries = binaries
        self.device = device
        self.native = native
        """Architecture that runs here; None without a GPU."""
        self.targets = tuple(targets)
        """Architectures whose static evidence counts."""
        self._ptx = ptx

    @property
    def binary(self) -> KernelBinary:
        """For this GPU; without one, for the first target."""
        return self.binaries[self.native or self.targets[0]]

    @property
    def name(self) -> str:
        return self.binary.name

    @property
    def profiles(self) -> dict[str, StaticProfile]:
        """Static evidence by target architecture."""
        return {arch: self.binaries[arch].profile for arch in self.targets}

    @property
    def profile(self) -> StaticProfile:
        """Static evidence for this GPU; without one, for the first target."""
        return self.binary.profile

    @property
    def registers(self) -> int:
        return self.profile.registers

    def ptx(self, arch: str | None = None) -> str:
        """The kernel's PTX for ``arch``, by default this GPU's or the first target."""
        return self._ptx(arch or self.native or self.targets[0])

    @cached_property
    def loaded(self) -> LoadedKernel:
        """In a module on the device.  Raises ``LoadError``."""
        return self.device.load(self.binary)

    def launch(self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (),
               shared_bytes: int = 0) -> Launch:  # fmt: skip
        """A launch of ``grid`` blocks of ``block`` threads with ``shared_bytes`` of dynamic shared memory.

        ``args``: device arrays, NumPy scalars or Python numbers, which take the type of their parameter.
        Raises ``LaunchError`` if anything does not fit the kernel or the device.
        """
        return Launch(self, _dim3(grid, "grid"), _dim3(block, "block"), tuple(args), shared_bytes)


def _dim3(given: int | Sequence[int], what: str) -> Dim3:
    values = (given,) if isinstance(given, int) or not isinstance(given, Sequence) else tuple(given)
    try:
        numbers = tuple(int(value) for value in values)
        whole = all(number == value for number, value in zip(numbers, values, strict=True))
    except (TypeError, ValueError):
        raise LaunchError(f"{what}={given!r}: it takes 1 to 3 whole numbers") from None
    if not whole or not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LaunchError(f"{what}={given!r}: it takes 1 to 3 whole numbers above 0")
    padded = (*numbers, 1, 1)
    return padded[0], padded[1], padded[2]


class Launch:
    """A kernel with its grid, block, dynamic shared memory and arguments; calling it enqueues it."""

    def __init__(self, kernel: Kernel, grid: Dim3, block: Dim3, args: tuple[Any, ...], shared_bytes: int) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.dynamic_shared_bytes = shared_bytes
        self.arguments = args
        self._check_configuration()
        self._prepared = prepare(kernel.binary, args)

    def __call__(self) -> None:
        """Enqueue one launch on the current stream.  Raises ``DeviceNeeded`` without a GPU."""
        self.kernel.loaded(self.grid, self.block, self._prepared, self.dynamic_shared_bytes)

    def run_with(self, loaded: LoadedKernel) -> None:
        """Enqueue another kernel of the same parameters with this launch's configuration and arguments."""
        loaded(self.grid, self.block, self._prepared, self.dynamic_shared_bytes)

    @property
    def binary(self) -> KernelBinary:
        return self.kernel.binary

    @property
    def threads_per_block(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def occupancy(self) -> dict[str, Occupancy]:
        """Theoretical occupancy by target architecture."""
        from pytest_gpuperf.compile import occupancy

        return {
            arch: occupancy(profile, arch, self.threads_per_block, self.dynamic_shared_bytes)
            for arch, profile in self.kernel.profiles.items()
        }

    def identity(self) -> Identity:
        """What runs: the machine code, its launch and its arguments without their contents."""
        binary = self.binary
        return Identity(
            code=binary.profile.code_hash,
            launch=f"grid={self.grid} block={self.block} shared={self.dynamic_shared_bytes}",
            arguments=tuple(describe_argument(argument) for argument in self._prepared),
            source=binary.source_hash,
            toolchain=binary.toolchain,
        )

    def records(self) -> dict[str, StaticRecord]:
        """Static evidence by target architecture, with the occupancy of this launch."""
        return {
            arch: self.kernel.binaries[arch].record(
                block=self.block, dynamic_shared_bytes=self.dynamic_shared_bytes, occupancy=occupancy
            )
            for arch, occupancy in self.occupancy.items()
        }

    def _check_configuration(self) -> None:
        facts, name, binary = self.kernel.device.facts, self.kernel.name, self.kernel.binary
        for axis, size, limit in zip("xyz", self.grid, facts.max_grid, strict=True):
            if size > limit:
                raise LaunchError(f"{name}: grid.{axis}={size} is beyond the device's limit of {limit}")
        for axis, size, limit in zip("xyz", self.block, facts.max_block, strict=True):
            if size > limit:
                raise LaunchError(f"{name}: block.{axis}={size} is beyond the device's limit of {limit}")
        if self.threads_per_block > facts.max_threads_per_block:
            raise LaunchError(
                f"{name}: block={self.block} has {self.threads_per_block} threads; "
                f"the device allows {facts.max_threads_per_block}"
            )
        bound = binary.max_threads_per_block
        if bound is not None and self.threads_per_block > bound:
            raise LaunchError(
                f"{name}: block={self.block} has {self.threads_per_block} threads; its __launch_bounds__ allow {bound}"
            )
        self._check_shared(facts.shared_bytes_per_block_optin)

    def _check_shared(self, limit: int) -> None:
        static = self.kernel.binary.profile.shared_bytes
        if self.dynamic_shared_bytes < 0:
            raise LaunchError(f"{self.kernel.name}: shared_bytes={self.dynamic_shared_bytes} is below 0")
        if static + self.dynamic_shared_bytes > limit:
            raise LaunchError(
                f"{self.kernel.name}: {static} bytes of static and {self.dynamic_shared_bytes} of dynamic shared "
                f"memory per block are beyond the device's limit of {limit}"
            )
