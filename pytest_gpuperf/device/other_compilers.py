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
from pytest_gpuperf.device.arguments import Structure, array_facts
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.device.driver_calls import REMEDY, STREAM
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple
from pytest_gpuperf.device.limits import dim3, dynamic_shared
from pytest_gpuperf.model.evidence import KernelBinary

if TYPE_CHECKING:
    from pytest_gpuperf.compile.cute_code import CuteCode
    from pytest_gpuperf.compile.cutile_code import CutileCode, TileArgument
    from pytest_gpuperf.compile.numba_code import NumbaArgument, NumbaFunction
    from pytest_gpuperf.compile.triton_code import TritonArgument, TritonCode

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
        missing = code.arguments[len(given) :]
        if len(given) > len(code.arguments) or not all(argument.is_constant for argument in missing):
            raise _wrong_number(self.name, [f"{one.name}: {one.type}" for one in code.arguments], given)
        parameters = []
        for argument, value in zip(code.arguments, given, strict=False):
            if argument.is_constant:
                _check_constant(f"{self.name}: argument {argument.name}", value, argument.constant)
            else:
                _check_multiple(f"{self.name}: argument {argument.name}", value, argument)
                parameters.append(value)
        scratch = [None] * code.scratch_pointers
        return Launch(self, dim3(grid, "grid"), (code.threads, 1, 1), [*parameters, *scratch], code.shared_bytes)


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
        given = as_tuple(self.name, args)
        if len(given) != len(self._arguments):
            raise _wrong_number(self.name, ["constants included"], given, len(self._arguments))
        block = self.binary.required_block or (1, 1, 1)
        return Launch(self, dim3(grid, "grid"), block, tuple(self._parameters(given)), 0)

    def _parameters(self, given: tuple[Any, ...]) -> Iterator[Any]:
        """An array is its address, shape and strides in elements; one with gaps goes by the bare address."""
        argument: TileArgument
        for place, (argument, value) in enumerate(zip(self._arguments, given, strict=True), start=1):
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

        Arrays are device arrays of any library, contiguous in the order that the signature says.
        Raises ``LaunchError`` if arguments do not fit, and as ``Kernel.launch``.
        """
        given = as_tuple(self.name, args)
        if len(given) != len(self._arguments):
            raise _wrong_number(self.name, [argument.name for argument in self._arguments], given)
        parts = [self._parts(*both) for both in zip(self._arguments, given, strict=True)]
        shared = dynamic_shared(self.name, shared_bytes)
        return Launch(self, dim3(grid, "grid"), dim3(block, "block"), [one for part in parts for one in part], shared)

    def _parts(self, argument: NumbaArgument, value: Any) -> tuple[Any, ...]:
        """The parameters that one argument becomes."""
        facts = array_facts(value)
        if argument.axes is None or facts is None:
            if not argument.type.startswith("complex"):
                return (value,)
            number = np.dtype(argument.type).type(value)
            return (number.real, number.imag)
        if argument.layout in ("C", "F") and argument.axes > 1 and facts.order != argument.layout:
            order = facts.order or "of a strided view"
            raise LaunchError(
                f"{self.name}: argument {argument.name} has the order {order}, and Numba compiled it for "
                f"{argument.layout}"
            )
        return (None, None, int(np.prod(facts.shape)), facts.dtype.itemsize, value, *facts.shape, *facts.strides)


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
    found = kernel.device.capture(lambda: call(*args))
    binary = kernel.binary
    if len(found.kernels) != 1 or found.others:
        names = ", ".join(one.symbol for one in found.kernels) or "no kernel"
        others = f" and {found.others} other operations" if found.others else ""
        remedy = REMEDY if found.kernels else STREAM
        raise LaunchError(f"{kernel.name}: the call enqueued {names}{others} on gpu.stream, not one kernel: {remedy}")
    (one,) = found.kernels
    sizes = [len(content) for content in one.parameters]
    if one.symbol != binary.symbol or sizes != [parameter.size for parameter in binary.parameters]:
        raise LaunchError(
            f"{kernel.name}: the call launched {one.symbol} with parameters of {sizes} bytes, which is not the kernel "
            f"{binary.symbol} that was handed over: hand over what the call launches"
        )
    entries = (f"as called({', '.join(map(_described, args))})", *(["as called"] * len(sizes)))
    values = [Structure(*both, kept=(call, args)) for both in zip(one.parameters, entries, strict=False)]
    return Launch(kernel, one.grid, one.block, values, one.dynamic_shared_bytes, one.attributes)


def _described(value: Any) -> str:
    """An argument of the call, as the identity has it: no addresses."""
    facts = array_facts(value)
    if facts is not None:
        return facts.entry
    return repr(value) if isinstance(value, bool | int | float | str | np.generic) else type(value).__name__


def _wrong_number(kernel: str, known: Sequence[str], given: Sequence[Any], taken: int | None = None) -> LaunchError:
    number = len(known) if taken is None else taken
    return LaunchError(f"{kernel} takes {number} arguments ({', '.join(known)}), and {len(given)} were given")


def _check_constant(where: str, value: Any, constant: Any) -> None:
    is_array = array_facts(value) is not None
    if value is not constant and (is_array or not bool(value == constant)):
        brief = "an array" if is_array else repr(value)
        raise LaunchError(
            f"{where} is {brief}, and {constant!r} was compiled in: compile it with what it is launched with"
        )


def _check_multiple(where: str, value: Any, argument: TritonArgument) -> None:
    """What Triton took for a multiple of 16 has to be one: an integer or an address."""
    facts = array_facts(value)
    number = facts.address if facts is not None else getattr(value, "ptr", value)
    if isinstance(number, int | np.integer) and int(number) % argument.divisor:
        what = "its address" if argument.type.startswith("*") else "it"
        raise LaunchError(
            f"{where}: {what} is {number}, and Triton compiled the kernel for multiples of {argument.divisor}: compile "
            "it with what it is launched with"
        )
