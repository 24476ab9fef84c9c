"""``TritonKernel``: a kernel that Triton compiled, launched without Triton as Triton would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple
from pytest_gpuperf.device.limits import dim3
from pytest_gpuperf.model.evidence import KernelBinary

if TYPE_CHECKING:
    from pytest_gpuperf.compile.triton_code import TritonArgument, TritonCode

_REMEDY = "compile it with the arguments that it is launched with"


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
        Raises ``LaunchError`` if an argument is not what the kernel was compiled for, and as ``Kernel.launch``.
        """
        parameters = tuple(self._parameters(as_tuple(self.name, args)))
        scratch = (None,) * self._code.scratch_pointers
        block = (self._code.threads, 1, 1)
        return Launch(self, dim3(grid, "grid"), block, (*parameters, *scratch), self._code.shared_bytes)

    def _parameters(self, given: tuple[Any, ...]) -> Iterator[Any]:
        """The arguments less the constants, all of them checked against what the kernel was compiled for."""
        arguments = self._code.arguments
        if len(given) > len(arguments) or not all(left_out.is_constant for left_out in arguments[len(given) :]):
            known = ", ".join(f"{argument.name}: {argument.type}" for argument in arguments)
            raise LaunchError(f"{self.name} takes {len(arguments)} arguments ({known}), and {len(given)} were given")
        for argument, value in zip(arguments, given, strict=False):
            if not argument.is_constant:
                self._check_multiple(argument, value)
                yield value
            elif not _equal(value, argument.constant):
                raise LaunchError(
                    f"{self.name}: argument {argument.name} is {_brief(value)}, and Triton compiled "
                    f"{argument.constant!r} into the kernel: {_REMEDY}"
                )

    def _check_multiple(self, argument: TritonArgument, value: Any) -> None:
        number = _number(value)
        if number is not None and number % argument.divisor:
            what = "its address" if argument.type.startswith("*") else "it"
            raise LaunchError(
                f"{self.name}: argument {argument.name}: {what} is {number}, and Triton compiled the kernel for "
                f"multiples of {argument.divisor}: {_REMEDY}"
            )


def _equal(given: Any, constant: Any) -> bool:
    return given is constant or (array_facts(given) is None and bool(given == constant))


def _brief(value: Any) -> str:
    facts = array_facts(value)
    return repr(value) if facts is None else f"an array of {facts.dtype}"


def _number(value: Any) -> int | None:
    """An integer or an address; None for what is neither, and for an array without an address."""
    facts = array_facts(value)
    if facts is not None:
        return facts.address
    if isinstance(value, int | np.integer):
        return int(value)
    return int(value.ptr) if hasattr(value, "ptr") else None
