"""``NumbaKernel``: a kernel that Numba compiled, launched without Numba as Numba would."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_gpuperf.compile.numba_code import numba_binary, numba_ptx
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple
from pytest_gpuperf.device.limits import dim3, dynamic_shared
from pytest_gpuperf.model.evidence import KernelBinary

if TYPE_CHECKING:
    from pytest_gpuperf.compile.numba_code import NumbaArgument, NumbaFunction


_NO_DRIVER = "CudaSupportError"
"""Numba's exception where there is no driver."""


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
        Raises ``LaunchError`` if an argument is not what the kernel was compiled for, and as ``Kernel.launch``.
        """
        given = as_tuple(self.name, args)
        if len(given) != len(self._arguments):
            known = ", ".join(argument.name for argument in self._arguments)
            raise LaunchError(
                f"{self.name} takes {len(self._arguments)} arguments ({known}), and {len(given)} were given"
            )
        parameters = [
            part
            for argument, value in zip(self._arguments, given, strict=True)
            for part in self._parts(argument, value)
        ]  # fmt: skip
        shared = dynamic_shared(self.name, shared_bytes)
        return Launch(self, dim3(grid, "grid"), dim3(block, "block"), parameters, shared)

    def _parts(self, argument: NumbaArgument, value: Any) -> Iterator[Any]:
        """The parameters that one argument becomes."""
        if argument.axes is not None:
            yield from self._parts_of_array(argument, argument.axes, value)
        elif argument.type.startswith("complex"):
            number = np.dtype(argument.type).type(value)
            yield from (number.real, number.imag)
        else:
            yield value

    def _parts_of_array(self, argument: NumbaArgument, axes: int, value: Any) -> Iterator[Any]:
        facts = array_facts(value)
        wanted = f"an array of {argument.type} with {axes} axes"
        if facts is None or str(facts.dtype) != argument.type or len(facts.shape) != axes:
            given = type(value).__name__ if facts is None else f"an array of {facts.dtype}, shape {facts.shape}"
            raise LaunchError(f"{self.name}: argument {argument.name} is {given}; Numba compiled it for {wanted}")
        in_f_order = facts.order == "F" and axes > 1
        if argument.layout in ("C", "F") and axes > 1 and in_f_order != (argument.layout == "F"):
            raise LaunchError(
                f"{self.name}: argument {argument.name} has the order {facts.order or 'of a strided view'}, and Numba "
                f"compiled it for {argument.layout}"
            )
        size = facts.dtype.itemsize
        steps = [size * math.prod(facts.shape[axis + 1 :]) for axis in range(axes)]
        if in_f_order:
            steps = [size * math.prod(facts.shape[:axis]) for axis in range(axes)]
        yield from (None, None, math.prod(facts.shape), size, value, *facts.shape, *steps)
