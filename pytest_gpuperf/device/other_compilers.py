"""Kernels that other compilers made, launched here by the calling convention of each.

A constant is no parameter, and an array is one or several: that is all a convention says.  What a compiler took for
granted beyond it (alignments, multiples, strides) is the test's to keep: a wrong result is what its check shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.cute_code import CuteCode
from pytest_gpuperf.compile.cutile_code import CutileCode, TileConstant
from pytest_gpuperf.compile.numba_code import NumbaArgument, NumbaFunction, numba_binary, numba_ptx
from pytest_gpuperf.compile.triton_code import TritonCode
from pytest_gpuperf.device.arguments import Opaque, array_facts
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.device.interface import Device, Dim3
from pytest_gpuperf.device.launch import Launch, as_tuple, configuration_of
from pytest_gpuperf.device.machine_code import MachineCode
from pytest_gpuperf.model.evidence import KernelBinary

_NO_DRIVER = "CudaSupportError"
"""Numba's exception where there is no driver."""
_Constant = tuple[Any, ...]
"""The value of an argument that was compiled in; empty for one that is a parameter."""


class _SettledKernel(MachineCode):
    """A kernel whose block and shared memory its compiler has settled."""

    _known: Mapping[str, _Constant]
    """Its arguments by name."""
    _block: int | Dim3 = 1
    _shared_bytes = 0
    _scratch_pointers = 0

    def launch(self, grid: int | Sequence[int], args: Sequence[Any] = ()) -> Launch:
        """A launch of ``grid`` programs or tile blocks on the arguments of the Python function, in its order.

        Constants are among them (of Triton also the integers equal to 1 that it folds); those at the end may be left
        out.  They are no parameters of the machine code, but must be what it was compiled with.  What else the compiler
        took for granted of the arrays is not checked.
        Raises ``LaunchError`` for another constant, and as ``Kernel.launch``.
        """
        parts = [part for value in _arguments(self.name, self._known, args) for part in self._parts(value)]
        configuration = configuration_of(grid, self._block, self._shared_bytes)
        return Launch(self, configuration, [*parts, *[None] * self._scratch_pointers])

    def _parts(self, value: Any) -> Iterable[Any]:
        """The parameters that an argument becomes."""
        return (value,)


class TritonKernel(_SettledKernel):
    """A kernel that Triton compiled."""

    def __init__(self, binary: KernelBinary, code: TritonCode, *, device: Device, native: str | None) -> None:
        """``binary`` is what ``triton_binary`` makes of ``code``."""
        super().__init__({binary.arch: binary}, device=device, native=native, ptx=lambda _: code.ptx)
        self._known = {one.name: (one.constant,) if one.is_constant else () for one in code.arguments}
        self._block, self._shared_bytes, self._scratch_pointers = code.threads, code.shared_bytes, code.scratch_pointers


class CutileKernel(_SettledKernel):
    """A kernel that cuTile compiled."""

    def __init__(self, code: CutileCode, *, device: Device, native: str | None, targets: Sequence[str]) -> None:
        """``code`` is what ``compile_cutile`` made, for ``targets`` and for the ``native`` architecture."""
        super().__init__(code.binaries, device=device, native=native, targets=targets, ptx=self._no_ptx)
        arguments = enumerate(code.arguments, start=1)
        self._known = {str(place): (one.value,) if isinstance(one, TileConstant) else () for place, one in arguments}
        self._block = self.binary.required_block or 1

    def _parts(self, value: Any) -> Iterable[Any]:
        """Of an array address, shape and strides in elements; one with gaps goes by its bare address."""
        facts = array_facts(value)
        if facts is None:
            return (value,)
        address = value if facts.order or facts.address is None else np.uint64(facts.address)
        return (address, *facts.shape, *(stride // facts.dtype.itemsize for stride in facts.strides))

    def _no_ptx(self, arch: str) -> str:
        raise BadArgument(f"{self.name}: cuTile makes machine code out of Tile IR, there is no PTX of it for {arch}")


class NumbaKernel(MachineCode):
    """A kernel whose arrays are several parameters each."""

    def __init__(
        self, binaries: Mapping[str, KernelBinary], function: NumbaFunction, *, device: Device, native: str | None,
        targets: Sequence[str],
    ) -> None:  # fmt: skip
        """``binaries`` are what ``numba_binary`` makes of ``function``, by architecture."""
        super().__init__(binaries, device=device, native=native, targets=targets, ptx=partial(numba_ptx, function))
        self._arguments = function.arguments

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), shared_bytes: int = 0
    ) -> Launch:
        """A launch of ``grid`` blocks of ``block`` threads on the arguments of the Python function.

        Arrays are device arrays of any library, contiguous in the order that the signature says: that is not checked.
        Raises ``LaunchError`` if arguments do not fit, and as ``Kernel.launch``.
        """
        given = _arguments(self.name, {argument.name: () for argument in self._arguments}, args)
        parts = [part for one, value in zip(self._arguments, given, strict=True) for part in self._parts(one, value)]
        return Launch(self, configuration_of(grid, block, shared_bytes), parts)

    def _parts(self, argument: NumbaArgument, value: Any) -> Iterable[Any]:
        facts = array_facts(value)
        if facts is not None:
            return (None, None, int(np.prod(facts.shape)), facts.dtype.itemsize, value, *facts.shape, *facts.strides)
        if argument.type.startswith("complex"):
            number = np.dtype(argument.type).type(value)
            return (number.real, number.imag)
        return (value,)


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
        Raises ``LaunchError`` if the call enqueues anything but this kernel, or cannot be captured, and
        ``DeviceNeeded`` without a GPU.
        """
        given = as_tuple(self.name, args)
        one = self.device.capture(lambda: call(*given))
        if one.symbol != self.binary.symbol:
            raise LaunchError(f"{self.name}: the call launched {one.symbol}, not the kernel {self.binary.symbol}")
        entry = f"as called({', '.join(map(_described, given))})"
        values = [Opaque(content, "as called" if place else entry, (call, given))
                  for place, content in enumerate(one.parameters)]  # fmt: skip
        return Launch(self, one.launch, values)

    def _kept_ptx(self, arch: str) -> str:
        if not self._codes[arch].ptx:
            raise BadArgument(f"{self.name}: the CuTe DSL did not keep its PTX: --keep-ptx")
        return self._codes[arch].ptx


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


def _arguments(kernel: str, known: Mapping[str, _Constant], args: Sequence[Any]) -> list[Any]:
    """The arguments that are parameters.

    Raises ``LaunchError`` unless all that are ``known`` are given, and constants as they were compiled in.
    """
    given = as_tuple(kernel, args)
    given += tuple(itertools.chain(*list(known.values())[len(given) :]))
    if len(known) != len(given):
        raise LaunchError(f"{kernel} takes {len(known)} arguments ({', '.join(known)}), and {len(args)} were given")
    parameters = []
    for (name, compiled), value in zip(known.items(), given, strict=True):
        is_array = array_facts(value) is not None
        if not compiled:
            parameters.append(value)
        elif value is not compiled[0] and (is_array or not bool(value == compiled[0])):
            raise LaunchError(
                f"{kernel}: argument {name} is {'an array' if is_array else repr(value)}, and {compiled[0]!r} was "
                "compiled in: compile it with what it is launched with"
            )
    return parameters


def _described(value: Any) -> str:
    """An argument of a captured call, as the identity has it: no addresses."""
    facts = array_facts(value)
    if facts is not None:
        return facts.entry
    return repr(value) if isinstance(value, bool | int | float | str | np.generic) else type(value).__name__
