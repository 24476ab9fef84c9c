"""``Kernel`` and ``Launch``: what a test holds in its hands.

A launch is validated against its kernel and the device where it is formed, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.config.call_arguments import require
from pytest_gpuperf.device.arguments import array_facts, opaque, prepare
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Configuration, Device, Dim3, LaunchAttributes, LoadedKernel
from pytest_gpuperf.device.limits import check_launch, dim3, dynamic_shared, threads_in
from pytest_gpuperf.device.module_variables import ModuleVariables
from pytest_gpuperf.model.evidence import Identity, KernelBinary, Occupancy, StaticProfile, StaticRecord


class MachineCode:
    """One kernel, compiled for every target, and loaded when it is first launched; how is for a subclass to say."""

    def __init__(
        self,
        binaries: Mapping[str, KernelBinary],
        *,
        device: Device,
        native: str | None,
        ptx: Callable[[str], str],
        targets: Sequence[str] | None = None,
        shared_by: Callable[[], str] = str,
    ) -> None:
        """``binaries`` by architecture, at least one; ``ptx`` makes the PTX for an architecture.

        ``shared_by`` names the fixture whose tests share the kernel, once it is set up; empty before and without one.
        """
        self.binaries = dict(binaries)
        self.device = device
        self.native = native
        """Architecture that runs here; None without a GPU."""
        self.targets = tuple(binaries if targets is None else targets)
        """Architectures whose static evidence counts."""
        self._ptx = ptx
        self.shared_by = shared_by
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

    def ptx(self, arch: str | None = None) -> str:
        """The PTX of the kernel's source for ``arch``, by default this GPU's or the first target."""
        if arch is not None:
            require("ptx", "arch", arch, str)
        return self._ptx(arch or self.arch)

    @cached_property
    def loaded(self) -> LoadedKernel:
        """The kernel in a module on the device, its variables filled.  Raises ``LoadError``."""
        loaded = self.device.load(self.binary)
        self.variables.fill(loaded, self.binary)
        return loaded


class Kernel(MachineCode):
    """A kernel that is launched as CUDA C++ kernels are."""

    cooperative = False
    """Whether each launch is cooperative, and not only those that ask for it."""

    def set_constant(self, name: str, value: Any) -> None:
        """Fill the ``__constant__`` or ``__device__`` variable ``name`` with a NumPy array or scalar.

        It is copied whenever a module is loaded, before anything is launched from it, into the machine code of the
        baseline too where the two are paired, and at once if this kernel has been launched.  What a kernel writes to
        it stays.  The content is part of the workload's identity.
        Raises ``LaunchError`` if there is no such variable or its size is another, and if tests share the kernel:
        then only the fixture that compiles it fills it.
        """
        if self.shared_by():
            raise LaunchError(
                f"{self.name}: set_constant({name!r}) in a test, and {self.shared_by()} shares the kernel with others: "
                "fill it in the fixture, or compile the kernel in the test"
            )
        self.variables.set(self.binary, name, value, self.__dict__.get("loaded"))

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        shared_bytes: int = 0,
        *,
        cooperative: bool = False,
        cluster: int | Sequence[int] | None = None,
    ) -> Launch:
        """A launch of ``grid`` blocks of ``block`` threads with ``shared_bytes`` of dynamic shared memory.

        ``args`` are device arrays (CuPy, PyTorch, whatever has ``__cuda_array_interface__``), NumPy scalars,
        or Python numbers, which take the type of their parameter.  Arrays are contiguous: a strided view is
        refused, because the kernel would get nothing but its first address.
        A ``cooperative`` launch has all its blocks resident at once, for kernels whose grid waits for itself;
        ``cluster`` is the blocks of a cluster, on sm_90 and later.
        Raises ``LaunchError`` if anything does not fit the kernel or the device.
        """
        clustered = None if cluster is None else dim3(cluster, "cluster")
        attributes = LaunchAttributes(bool(cooperative or self.cooperative), clustered)
        shared_bytes = dynamic_shared(self.name, shared_bytes)
        return Launch(self, Configuration(dim3(grid, "grid"), dim3(block, "block"), shared_bytes, attributes), args)


class Launch:
    """A kernel with its grid, block, dynamic shared memory and arguments; calling it enqueues it."""

    def __init__(self, kernel: MachineCode, configuration: Configuration, args: Sequence[Any]) -> None:
        self.kernel = kernel
        self.configuration = configuration
        self.grid, self.block, self.dynamic_shared_bytes, self.attributes = configuration
        given, parameters = as_tuple(kernel.name, args), kernel.binary.parameters
        self.arguments = tuple(map(opaque, given, parameters)) if len(given) == len(parameters) else given
        """One for each parameter; kept alive as long as the launch."""
        check_launch(kernel.binary, kernel.device.facts, configuration, resident=kernel.native is not None)
        prepared = prepare(kernel.binary, self.arguments, self._is_on_host)
        self._values = tuple(argument.value for argument in prepared)
        self._entries = tuple(argument.entry for argument in prepared)

    def __call__(self) -> None:
        """Enqueue one launch on the current stream.  Raises ``DeviceNeeded`` without a GPU."""
        self.run_with(self.kernel.loaded)

    def run_with(
        self,
        loaded: LoadedKernel,
        configuration: Configuration | None = None,
        values: tuple[Any, ...] | None = None,
        *,
        whose: str = "",
    ) -> None:
        """Enqueue another kernel with this launch's configuration and arguments, or others that fit it.

        ``values`` are what ``values_for`` its machine code returned; messages about it say ``whose`` kernel it is.
        """
        configuration = configuration or self.configuration
        self.kernel.device.launches.launched(self.kernel.name + whose, configuration.grid, configuration.block)
        loaded(configuration, self._values if values is None else values)

    def values_for(self, binary: KernelBinary, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments as a kernel with other parameters is given them.  Raises ``LaunchError``."""
        return tuple(argument.value for argument in prepare(binary, arguments, self._is_on_host))

    def with_arguments(self, arguments: Sequence[Any]) -> Launch:
        """The same launch on other arguments.  Raises ``LaunchError``."""
        return Launch(self.kernel, self.configuration, arguments)

    @property
    def binary(self) -> KernelBinary:
        """The machine code that runs here; without a GPU, that of the first target."""
        return self.kernel.binary

    @property
    def threads_per_block(self) -> int:
        return threads_in(self.block)

    @property
    def occupancy(self) -> dict[str, Occupancy]:
        """Theoretical occupancy by target architecture."""
        return {
            arch: occupancy(profile, arch, threads_in(self._block_on(arch)), self.dynamic_shared_bytes)
            for arch, profile in self.kernel.profiles.items()
        }

    def _block_on(self, arch: str) -> Dim3:
        """Of this launch, unless the compiler chose the block, and another one there."""
        return self.kernel.binaries[arch].required_block or self.block

    def identity(self) -> Identity:
        """Identity of the execution: machine code, launch, and arguments without the arrays' contents."""
        binary = self.binary
        return Identity(
            code=binary.profile.code_hash,
            launch=f"grid={self.grid} block={self.block} shared={self.dynamic_shared_bytes}"
            f"{self.attributes.entry}{self.kernel.variables.entries}",
            arguments=self._entries,
            source=binary.source_hash,
            toolchain=binary.toolchain,
            config=binary.config,
        )

    def records(self) -> dict[str, StaticRecord]:
        """Static evidence by target architecture, with the occupancy of this launch."""
        return {
            arch: self.kernel.binaries[arch].record(
                block=self._block_on(arch),
                dynamic_shared_bytes=self.dynamic_shared_bytes,
                occupancy=occupancy,
                grid=self.grid,
            )
            for arch, occupancy in self.occupancy.items()
        }

    def _is_on_host(self, array: Any) -> bool:
        """True if a NumPy array is out of the device's reach: always, unless a simulated device makes such itself."""
        return not isinstance(self.kernel.device.arrays.empty(1), type(array))


def as_tuple(kernel: str, args: Any) -> tuple[Any, ...]:
    """``args`` as a tuple.  Raises ``LaunchError`` for an argument that stands alone."""
    if array_facts(args) is not None or not isinstance(args, Sequence):
        raise LaunchError(f"{kernel}: args takes a tuple of arguments, not a single one: args=(array,)")
    return tuple(args)
