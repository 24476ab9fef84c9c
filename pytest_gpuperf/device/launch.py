"""``Kernel`` and ``Launch``: what a test holds in its hands.

A launch is validated against its kernel and the device where it is formed, on any machine.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.machine_code.cubin import module_variables
from pytest_gpuperf.compile.machine_code.occupancy import BLOCKS_PER_CLUSTER, occupancy
from pytest_gpuperf.compile.machine_code.symbols import readable
from pytest_gpuperf.device.arguments import Argument, Source, array_facts, prepare
from pytest_gpuperf.device.compiled_kernel import CompiledKernel
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import COOPERATIVE, PDL, PLAIN, Configuration, LaunchAttributes, LoadedKernel
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import KernelBinary, Occupancy, StaticRecord
from pytest_gpuperf.model.result import Dim3
from pytest_gpuperf.model.time_record import Identity

_CLUSTER = re.compile(r" cluster=\((\d+), (\d+), (\d+)\)")


class Kernel(CompiledKernel):
    """A kernel that is launched as CUDA C++ kernels are."""

    cooperative = False
    """Whether each launch is cooperative, and not only those that ask for it."""
    ptx_of: Callable[[str], str] | None = None
    """Makes the PTX of its source for an architecture; None for ready-made machine code."""

    def ptx(self, arch: str | None = None) -> str:
        """The PTX of the kernel's source for ``arch``, by default this GPU's or the first target.

        Raises ``BadArgument`` where there is machine code alone.
        """
        if self.ptx_of is None:
            raise BadArgument(f"{self.name}: it is machine code alone, there is no PTX of it for {arch or self.arch}")
        return self.ptx_of(arch or self.arch)

    def set_constant(self, name: str, value: Any) -> None:
        """Fill the ``__constant__`` or ``__device__`` variable ``name`` with a NumPy array or scalar.

        It is copied at once if this kernel has been launched, and whenever a module is loaded.  In a pair the
        baseline's module gets it too.  What a kernel writes to it stays.  The content is part of the workload's
        identity.
        Raises ``LaunchError`` if there is no such variable or its size is another.
        """
        sizes = module_variables(self.binary.cubin)
        found = [symbol for symbol in sizes if name in (symbol, readable(symbol))]
        if len(found) != 1:
            there = ", ".join(f"{readable(symbol)} ({size} bytes)" for symbol, size in sorted(sizes.items()))
            raise LaunchError(
                f"{self.name}: set_constant({name!r}): its machine code has no __constant__ or __device__ variable "
                f"of that name; it has {there or 'none'}. The compiler may remove an unused one"
            )
        symbol = found[0]
        if not isinstance(value, np.ndarray | np.generic) or value.nbytes != sizes[symbol]:
            library, size = type(value).__module__.partition(".")[0], getattr(value, "nbytes", "no")
            raise LaunchError(
                f"{self.name}: set_constant({name!r}) was given {library}.{type(value).__name__} of {size} bytes: "
                f"it takes a NumPy array or scalar of {sizes[symbol]} bytes"
            )
        self.variables[symbol] = np.ascontiguousarray(value).tobytes()
        if "loaded" in self.__dict__:
            self.loaded.write(symbol, self.variables[symbol])

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), shared_bytes: int = 0, *,
        cooperative: bool = False, cluster: int | Sequence[int] | None = None, pdl: bool = False,
    ) -> Launch:  # fmt: skip
        """A launch of ``grid`` blocks of ``block`` threads with ``shared_bytes`` of dynamic shared memory.

        ``args`` are device arrays (CuPy, PyTorch, whatever has ``__cuda_array_interface__``), NumPy scalars,
        or Python numbers, which take the type of their parameter.  Arrays are contiguous: a strided view is
        refused, because the kernel would get nothing but its first address.
        A ``cooperative`` launch has all its blocks resident at once, for kernels whose grid waits for itself;
        ``cluster`` is the blocks of a cluster, and ``pdl`` a programmatic dependent launch, both on sm_90 and later.
        A sample's time is that of this launch alone: with a cold cache the flush is in front of it, and there is
        nothing that it could overlap.  With ``cache="warm"`` it may overlap the sample in front of it.
        Raises ``LaunchError`` if anything does not fit the kernel or the device.
        """
        clustered = None if cluster is None else dim3(cluster, "cluster")
        attributes = LaunchAttributes(bool(cooperative or self.cooperative), clustered, bool(pdl))
        return Launch(self, configuration_of(grid, block, shared_bytes, attributes), args)


class Launch:
    """A kernel with its grid, block, dynamic shared memory and arguments; calling it enqueues it."""

    def __init__(self, kernel: CompiledKernel, configuration: Configuration, args: Sequence[Any]) -> None:
        self.kernel = kernel
        self.configuration = configuration
        self.grid, self.block, self.dynamic_shared_bytes, self.attributes = configuration
        require_limits(kernel.binary, kernel.device.facts, configuration)
        fitted = self._fitted(kernel.binary, as_tuple(kernel.name, args))
        self.arguments = tuple(argument.given for argument in fitted)
        """One for each parameter; kept alive as long as the launch."""
        self._values = tuple(argument.value for argument in fitted)
        self._entries = tuple(argument.entry for argument in fitted)

    def __call__(self) -> None:
        """Enqueue one launch on the current stream.  Raises ``DeviceNeeded`` without a GPU."""
        self.run_with(self.kernel.loaded)

    def run_with(
        self, loaded: LoadedKernel, configuration: Configuration | None = None, values: tuple[Any, ...] | None = None,
        *, whose: str = "",
    ) -> None:  # fmt: skip
        """Enqueue another kernel with this launch's configuration and arguments, or others that fit it.

        ``values`` are what ``values_for`` its machine code returned; messages about it say ``whose`` kernel it is.
        """
        configuration = configuration or self.configuration
        self.kernel.device.launches.launched(self.kernel.name + whose, configuration.grid, configuration.block)
        loaded(configuration, self._values if values is None else values)

    def values_for(self, binary: KernelBinary, sources: Sequence[Source]) -> tuple[Any, ...]:
        """What ``recorded_arguments`` found, on this launch's arrays, as the kernel ``binary`` is given it.

        Raises ``LaunchError``.
        """
        given = [self.arguments[source] if isinstance(source, int) else source for source in sources]
        return tuple(argument.value for argument in self._fitted(binary, given))

    @property
    def binary(self) -> KernelBinary:
        """The machine code that runs here; without a GPU, that of the first target."""
        return self.kernel.binary

    @property
    def occupancy(self) -> dict[str, Occupancy]:
        """Theoretical occupancy by target architecture."""
        return {
            arch: occupancy(
                profile, arch, math.prod(self._block_on(arch)), self.dynamic_shared_bytes,
                clustered=math.prod(self.attributes.cluster or (1,)) > 1,
            )
            for arch, profile in self.kernel.profiles.items()
        }  # fmt: skip

    def _block_on(self, arch: str) -> Dim3:
        """Of this launch, unless the compiler chose the block, and another one there."""
        return self.kernel.binaries[arch].required_block or self.block

    def identity(self) -> Identity:
        """Identity of the execution: machine code, launch, and arguments without the arrays' contents."""
        binary, launch = self.binary, f"grid={self.grid} block={self.block} shared={self.dynamic_shared_bytes}"
        return Identity(
            code=binary.profile.code_hash, launch=f"{launch}{self.attributes.entry}{self.kernel.variable_entries}",
            arguments=self._entries, source=binary.source_hash, toolchain=binary.toolchain, config=binary.config,
        )  # fmt: skip

    def records(self) -> dict[str, StaticRecord]:
        """Static evidence by target architecture, with the occupancy of this launch."""
        return {
            arch: self.kernel.binaries[arch].record(
                block=self._block_on(arch), dynamic_shared_bytes=self.dynamic_shared_bytes, occupancy=resident,
                grid=self.grid,
            )
            for arch, resident in self.occupancy.items()
        }  # fmt: skip

    def _fitted(self, binary: KernelBinary, arguments: Sequence[Any]) -> tuple[Argument, ...]:
        """NumPy arrays are out of the device's reach, unless a simulated device makes such itself."""
        arrays = self.kernel.device.arrays
        return prepare(binary, arguments, lambda array: not isinstance(arrays.empty(1), type(array)))


def configuration_of(
    grid: int | Sequence[int], block: int | Sequence[int], shared_bytes: int = 0, attributes: LaunchAttributes = PLAIN
) -> Configuration:
    """Of a launch as a test or a record gives it.  Raises ``LaunchError`` for what is no whole number."""
    try:
        dynamic_bytes = operator.index(shared_bytes)
    except TypeError:
        raise LaunchError(f"shared_bytes={shared_bytes!r}: it takes a whole number") from None
    return Configuration(dim3(grid, "grid"), dim3(block, "block"), dynamic_bytes, attributes)


def dim3(given: int | Sequence[int], what: str) -> Dim3:
    """1 to 3 whole numbers above 0, filled up with ones.  Raises ``LaunchError`` that names ``what``."""
    values: Any = tuple(given) if isinstance(given, Sequence) else (given,)
    try:
        numbers = tuple(map(operator.index, values))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LaunchError(f"{what}={given!r}: it takes 1 to 3 whole numbers above 0")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def attributes_of(launch: str) -> LaunchAttributes:
    """Those in the ``launch`` of a recorded identity."""
    attributes, found = launch.partition(" constant ")[0], _CLUSTER.search(launch)
    cluster = None if found is None else (int(found[1]), int(found[2]), int(found[3]))
    return LaunchAttributes(COOPERATIVE in attributes, cluster, PDL in attributes)


def require_limits(binary: KernelBinary, facts: DeviceFacts, launch: Configuration) -> None:
    """Raise ``LaunchError`` for what the driver would call an invalid value; all else that it refuses it names."""
    grid, block, dynamic_bytes, (_, cluster, pdl) = launch
    threads, static_bytes = math.prod(block), binary.profile.shared_bytes
    most_threads = min(facts.max_threads_per_block, binary.max_threads_per_block or facts.max_threads_per_block)
    most_bytes, why = facts.shared_bytes_per_block_optin, ""
    if any(map(operator.gt, grid, facts.max_grid)):
        why = f"grid={grid} is beyond the device's limit of {facts.max_grid}"
    elif any(map(operator.gt, block, facts.max_block)):
        why = f"block={block} is beyond the device's limit of {facts.max_block}"
    elif binary.required_block not in (None, block):
        why = f"block={block}, but its machine code requires block={binary.required_block}"
    elif threads > most_threads:
        why = f"block={block} has {threads} threads, but the device or its __launch_bounds__ allow {most_threads}"
    elif not 0 <= dynamic_bytes <= most_bytes - static_bytes:
        why = f"{static_bytes} bytes of static and {dynamic_bytes} of dynamic shared memory per block are beyond the "
        why += f"device's limit of {most_bytes}"
    elif cluster is not None and (math.prod(cluster) > BLOCKS_PER_CLUSTER or any(map(operator.mod, grid, cluster))):
        why = f"cluster={cluster} has more than {BLOCKS_PER_CLUSTER} blocks, or does not divide grid={grid}"
    elif pdl and facts.compute_capability < (9, 0):
        why = f"pdl=True begins with sm_90, and this GPU is {facts.arch}"
    if why:
        raise LaunchError(f"{binary.name}: {why}")


def as_tuple(kernel: str, args: Any) -> tuple[Any, ...]:
    """``args`` as a tuple.  Raises ``LaunchError`` for an argument that stands alone."""
    if array_facts(args) is not None or not isinstance(args, Sequence):
        raise LaunchError(f"{kernel}: args takes a tuple of arguments, not a single one: args=(array,)")
    return tuple(args)
