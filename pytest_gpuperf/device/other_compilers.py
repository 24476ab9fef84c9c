"""Kernels that other compilers made, launched here by the calling convention of each.

A constant is no parameter, and an array is one or several: that is all a convention says.  What a compiler took for
granted beyond it (alignments, multiples, strides) is the test's to keep: a wrong result is what its check shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_gpuperf.compile.cutile_code import TileArray, TileConstant
from pytest_gpuperf.compile.numba_code import numba_binary, numba_ptx
from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.arguments import Opaque, array_facts
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.device.interface import Configuration, Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple
from pytest_gpuperf.device.limits import dim3, dynamic_shared
from pytest_gpuperf.model.evidence import KernelBinary

if TYPE_CHECKING:
    from pytest_gpuperf.compile.cute_code import CuteCode
    from pytest_gpuperf.compile.cutile_code import CutileCode
    from pytest_gpuperf.compile.numba_code import NumbaArgument, NumbaFunction
    from pytest_gpuperf.compile.triton_code import TritonCode

_NO_DRIVER = "CudaSupportError"
"""Numba's exception where there is no driver."""


class TritonKernel(MachineCode):
    """A kernel whose block, shared memory and scratch pointers Triton has settled."""

    def __init__(self, binary: KernelBinary, code: TritonCode, *, device: Device, native: str | None) -> None:
        """``binary`` is what ``triton_binary`` makes of ``code``."""
        super().__init__({binary.arch: binary}, device=device, native=native, ptx=lambda _: code.ptx)
        self._code = code

    def launch(self, grid: int | Sequence[int], args: Sequence[Any] = ()) -> Launch:
        """A launch of ``grid`` programs on the arguments of the Triton function, in its order.

        Constants are among them, ``tl.constexpr`` as well as the integers equal to 1 that Triton folds; those at
        the end may be left out.  They are no parameters of the machine code, but must be what it was compiled with.
        Raises ``LaunchError`` if one is not, and as ``Kernel.launch``.
        """
        code, given = self._code, as_tuple(self.name, args)
        optional = all(argument.is_constant for argument in code.arguments[len(given) :])
        known = code.arguments[: len(given)] if optional else code.arguments
        parameters = []
        for argument, value in _pairs(self.name, [(one.name, one) for one in known], given):
            if argument.is_constant:
                _check_constant(f"{self.name}: argument {argument.name}", value, argument.constant)
            else:
                parameters.append(value)
        scratch = [None] * code.scratch_pointers
        configuration = Configuration(dim3(grid, "grid"), (code.threads, 1, 1), code.shared_bytes)
        return Launch(self, configuration, [*parameters, *scratch])


class CutileKernel(MachineCode):
    """A kernel whose block and shared memory cuTile's compiler has settled."""

    def __init__(self, code: CutileCode, *, device: Device, native: str | None, targets: Sequence[str]) -> None:
        """``code`` is what ``compile_cutile`` made, for ``targets`` and for the ``native`` architecture."""
        super().__init__(code.binaries, device=device, native=native, targets=targets, ptx=self._no_ptx)
        self._arguments = code.arguments

    def launch(self, grid: int | Sequence[int], args: Sequence[Any] = ()) -> Launch:
        """A launch of ``grid`` tile blocks on the arguments of the Python function, in its order.

        Constants are among them, and must be what was compiled in.  Arrays have to meet the constraints of the
        signature, which the compiler took for granted: that is not checked.
        Raises ``LaunchError`` for another constant, and as ``Kernel.launch``.
        """
        block = self.binary.required_block or (1, 1, 1)
        parameters = tuple(self._parameters(as_tuple(self.name, args)))
        return Launch(self, Configuration(dim3(grid, "grid"), block), parameters)

    def _parameters(self, given: tuple[Any, ...]) -> Iterator[Any]:
        """An array is its address, shape and strides in elements; one with gaps goes by the bare address."""
        known = [(str(place), argument) for place, argument in enumerate(self._arguments, start=1)]
        for place, (argument, value) in enumerate(_pairs(self.name, known, given), start=1):
            facts = array_facts(value)
            if isinstance(argument, TileConstant):
                _check_constant(f"{self.name}: argument {place}", value, argument.value)
            elif not isinstance(argument, TileArray) or facts is None:
                yield value
            else:
                yield value if facts.order or facts.address is None else np.uint64(facts.address)
                yield from (*facts.shape, *(stride // facts.dtype.itemsize for stride in facts.strides))

    def _no_ptx(self, arch: str) -> str:
        raise BadArgument(f"{self.name}: cuTile makes machine code out of Tile IR, there is no PTX of it for {arch}")


class NumbaKernel(MachineCode):
    """A kernel whose arrays are several parameters each."""

    def __init__(
        self, binaries: Mapping[str, KernelBinary], function: NumbaFunction, *, device: Device, native: str | None,
        targets: Sequence[str],
    ) -> None:  # fmt: skip
        """``binaries`` are what ``numba_binary`` makes of ``function``, by architecture."""
        super().__init__(binaries, device=device, native=native, targets=targets,
                         ptx=lambda arch: numba_ptx(function, arch))  # fmt: skip
        self._arguments = function.arguments

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), shared_bytes: int = 0
    ) -> Launch:
        """A launch of ``grid`` blocks of ``block`` threads on the arguments of the Python function.

        Arrays are device arrays of any library, contiguous in the order that the signature says: that is not checked.
        Raises ``LaunchError`` if arguments do not fit, and as ``Kernel.launch``.
        """
        known = [(argument.name, argument) for argument in self._arguments]
        parameters = [part for both in _pairs(self.name, known, as_tuple(self.name, args)) for part in _parts(*both)]
        shared = dynamic_shared(self.name, shared_bytes)
        return Launch(self, Configuration(dim3(grid, "grid"), dim3(block, "block"), shared), parameters)


def _parts(argument: NumbaArgument, value: Any) -> tuple[Any, ...]:
    """The parameters that one argument of Numba's becomes."""
    facts = array_facts(value)
    if argument.axes is not None and facts is not None:
        return (None, None, int(np.prod(facts.shape)), facts.dtype.itemsize, value, *facts.shape, *facts.strides)
    if argument.type.startswith("complex"):
        number = np.dtype(argument.type).type(value)
        return (number.real, number.imag)
    return (value,)


def numba_binaries(function: NumbaFunction, archs: Iterable[str], *, has_gpu: bool) -> dict[str, KernelBinary]:
    """``numba_binary`` by architecture; raises alike.

    Raises ``DeviceNeeded`` where Numba needs a driver and there is no GPU: it compiles device functions that a kernel
    calls for the one that is there.  Where there is one, a driver that Numba cannot use is an error as any other.
    """
    try:
        return {arch: numba_binary(function, arch) for arch in archs}
    except Exception as problem:
        if has_gpu or type(problem).__name__ != _NO_DRIVER:
            raise
        raise DeviceNeeded.for_(f"Numba compiles the device functions of {function.name}") from problem


class CuteKernel(MachineCode):
    """A kernel whose grid, block and parameters are formed by a host function of the CuTe DSL."""

    def __init__(self, codes: Mapping[str, CuteCode], *, device: Device, native: str | None) -> None:
        """``codes`` is what ``read_cute`` found."""
        self._codes = codes
        binaries = {arch: code.binary for arch, code in codes.items()}
        super().__init__(binaries, device=device, native=native, ptx=self._kept_ptx)

    def launch(self, call: Callable[..., Any], args: Sequence[Any] = ()) -> Launch:
        """A launch as ``call(*args)`` makes it: ``call`` runs the compiled function on ``gpu.stream``.

        It is called once, here, while the stream is captured: nothing is executed then, and grid, block, shared memory
        and the bytes of all parameters are taken from the graph.  ``args``, arrays above all, are kept alive, and are
        what the identity says of the arguments; other arrays that ``call`` uses are the test's to keep.
        Raises ``LaunchError`` if the call enqueues anything but this kernel, or cannot be captured.
        """
        return launch_as_called(self, call, as_tuple(self.name, args))

    def _kept_ptx(self, arch: str) -> str:
        if not self._codes[arch].ptx:
            raise BadArgument(f"{self.name}: the CuTe DSL did not keep its PTX: --keep-ptx")
        return self._codes[arch].ptx


def launch_as_called(kernel: MachineCode, call: Callable[..., Any], args: Sequence[Any]) -> Launch:
    """A launch of ``kernel`` as ``call(*args)`` launches it, which is run once for that and executes nothing.

    Raises ``LaunchError`` unless that enqueues this kernel and nothing else, and ``DeviceNeeded`` without a GPU.
    """
    one = kernel.device.capture(lambda: call(*args))
    if one.symbol != kernel.binary.symbol:
        raise LaunchError(f"{kernel.name}: the call launched {one.symbol}, not the kernel {kernel.binary.symbol}")
    entry = f"as called({', '.join(map(_described, args))})"
    values = [Opaque(content, "as called" if place else entry, (call, args))
              for place, content in enumerate(one.parameters)]  # fmt: skip
    return Launch(kernel, one.launch, values)


def _described(value: Any) -> str:
    """An argument of the call, as the identity has it: no addresses."""
    facts = array_facts(value)
    if facts is not None:
        return facts.entry
    return repr(value) if isinstance(value, bool | int | float | str | np.generic) else type(value).__name__


def _pairs(kernel: str, known: Sequence[tuple[str, Any]], given: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Each known argument and the one given for it.  Raises ``LaunchError`` unless there are as many."""
    if len(known) != len(given):
        names = ", ".join(name for name, _ in known)
        raise LaunchError(f"{kernel} takes {len(known)} arguments ({names}), and {len(given)} were given")
    return zip((argument for _, argument in known), given, strict=True)


def _check_constant(where: str, value: Any, constant: Any) -> None:
    is_array = array_facts(value) is not None
    if value is not constant and (is_array or not bool(value == constant)):
        brief = "an array" if is_array else repr(value)
        raise LaunchError(
            f"{where} is {brief}, and {constant!r} was compiled in: compile it with what it is launched with"
        )
