"""``CutileKernel``: a kernel that cuTile compiled, launched without cuTile by its documented calling convention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_gpuperf.compile.cutile_code import TileArray, TileConstant
from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.arguments import ArrayFacts, array_facts
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple
from pytest_gpuperf.device.limits import dim3

if TYPE_CHECKING:
    from pytest_gpuperf.compile.cutile_code import CutileCode

_REMEDY = "compile it with a signature that its arguments meet"
_NAMES = {"bool": "bool_"}
"""NumPy's names of types that cuTile calls otherwise."""


class CutileKernel(MachineCode):
    """A kernel whose block and shared memory cuTile's compiler has settled."""

    def __init__(self, code: CutileCode, *, device: Device, native: str | None, targets: Sequence[str]) -> None:
        """``code`` is what ``compile_cutile`` made, for ``targets`` and for the ``native`` architecture."""
        super().__init__(code.binaries, device=device, native=native, targets=targets, ptx=self._no_ptx)
        self._arguments = code.arguments

    def launch(self, grid: int | Sequence[int], args: Sequence[Any] = ()) -> Launch:
        """A launch of ``grid`` tile blocks on the arguments of the Python function, in its order.

        Constants are among them, and must be what was compiled in.  Arrays have to meet the constraints of the
        signature: the compiler took them for granted.  That two arrays do not overlap is not checked.
        Raises ``LaunchError`` for what the kernel was not compiled for, and as ``Kernel.launch``.
        """
        given = as_tuple(self.name, args)
        if len(given) != len(self._arguments):
            raise LaunchError(
                f"{self.name} takes {len(self._arguments)} arguments, constants included, and {len(given)} were given"
            )
        block = self.binary.required_block or (1, 1, 1)
        return Launch(self, dim3(grid, "grid"), block, tuple(self._parameters(given)), 0)

    def _parameters(self, given: tuple[Any, ...]) -> Iterator[Any]:
        for place, (argument, value) in enumerate(zip(self._arguments, given, strict=True), start=1):
            where = f"{self.name}: argument {place}"
            if isinstance(argument, TileArray):
                yield from _array(where, argument, value)
            elif not isinstance(argument, TileConstant):
                yield value
            elif array_facts(value) is not None or not bool(value == argument.value):
                raise LaunchError(f"{where} is {_brief(value)}, and {argument.value!r} was compiled in: {_REMEDY}")

    def _no_ptx(self, arch: str) -> str:
        raise BadArgument(f"{self.name}: cuTile makes machine code out of Tile IR, there is no PTX of it for {arch}")


def _array(where: str, argument: TileArray, value: Any) -> Iterator[Any]:
    """Address, shape and strides.  A view with gaps goes by its address, which a pointer alone would not describe."""
    facts = array_facts(value)
    if facts is None:
        raise LaunchError(f"{where} is {_brief(value)}, and the kernel takes an array of {argument.dtype}")
    axes, itemsize = len(argument.shape_constants), facts.dtype.itemsize
    if len(facts.shape) != axes or _NAMES.get(facts.dtype.name, facts.dtype.name) != argument.dtype:
        raise LaunchError(
            f"{where} is an array of {facts.dtype} with {len(facts.shape)} dimensions, and the kernel takes "
            f"{argument.dtype} with {axes}"
        )
    strides = tuple(stride // itemsize for stride in facts.strides)
    _check_numbers(where, "shape", facts.shape, argument.shape_constants, argument.shape_multiples)
    _check_numbers(where, "strides", strides, argument.stride_constants, argument.stride_multiples)
    if any(least is not None and stride < least for stride, least in zip(strides, argument.least_strides, strict=True)):
        raise LaunchError(f"{where} has strides {strides}, and the least it was compiled for is "
                          f"{argument.least_strides}: {_REMEDY}")  # fmt: skip
    _check_address(where, argument, facts)
    yield value if facts.order or facts.address is None else np.uint64(facts.address)
    yield from (*facts.shape, *strides)


def _check_numbers(
    where: str, what: str, numbers: tuple[int, ...], constants: tuple[int | None, ...], multiples: tuple[int, ...]
) -> None:
    for axis, (number, constant, multiple) in enumerate(zip(numbers, constants, multiples, strict=True)):
        if constant is not None and number != constant:
            raise LaunchError(f"{where} has {what}[{axis}] = {number}, and {constant} was compiled in: {_REMEDY}")
        if number % multiple:
            raise LaunchError(f"{where} has {what}[{axis}] = {number}, no multiple of {multiple}: {_REMEDY}")


def _check_address(where: str, argument: TileArray, facts: ArrayFacts) -> None:
    if facts.address is not None and facts.address % argument.base_multiple:
        raise LaunchError(f"{where} has an address that is no multiple of {argument.base_multiple}: {_REMEDY}")


def _brief(value: Any) -> str:
    facts = array_facts(value)
    return repr(value) if facts is None else f"an array of {facts.dtype}"
