"""Kernels that other compilers made, launched here by the calling convention of each.

A constant is no parameter, and an array is one or several: that is all a convention says.  What a compiler took for
granted beyond it (alignments, multiples, strides) is the test's to keep: a wrong result is what its check shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.compile.adapters.handed import TF32, FunctionArgument, Handed
from pytest_gpuperf.device.arguments import Opaque, array_facts
from pytest_gpuperf.device.compiled_kernel import CompiledKernel
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Device, LaunchAttributes
from pytest_gpuperf.device.launch import Launch, as_tuple, configuration_of, dim3
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.result import Dim3


class _HandedKernel(CompiledKernel):
    """A kernel launched on the arguments of the function that its compiler was given."""

    def __init__(
        self, handed: Handed, binaries: Mapping[str, KernelBinary], targets: Sequence[str], native: str | None,
        *, device: Device,
    ) -> None:  # fmt: skip
        """``binaries`` are those of ``handed``, for the ``targets`` and for the ``native`` architecture."""
        super().__init__(binaries, device=device, native=native, targets=targets)
        self._handed = handed

    def _parameters(self, args: Sequence[Any]) -> list[Any]:
        """The machine code's parameters; constants at the end may be left out.

        Raises ``LaunchError`` unless all arguments are given, and constants as they were compiled.
        """
        known, given = self._handed.arguments or (), as_tuple(self.name, args)
        given += tuple(itertools.chain(*(one.constant for one in known[len(given) :])))
        if len(known) != len(given):
            names = ", ".join(one.name for one in known)
            raise LaunchError(f"{self.name} takes {len(known)} arguments ({names}), and {len(args)} were given")
        made: list[Any] = []
        for one, value in zip(known, given, strict=True):
            if not one.constant:
                made += self._parts(one, value)
                continue
            is_array, (compiled,) = array_facts(value) is not None, one.constant
            if value is not compiled and (is_array or not bool(value == compiled)):
                raise LaunchError(
                    f"{self.name}: argument {one.name} is {'an array' if is_array else repr(value)}, but the "
                    f"kernel was compiled for {compiled!r}: compile and launch it with the same value"
                )
        return [*made, *[None] * self._handed.scratch_pointers]

    def _parts(self, argument: FunctionArgument, value: Any) -> tuple[Any, ...]:  # noqa: ARG002 for subclasses
        """The parameters that an argument becomes."""
        return (value,)


class TritonKernel(_HandedKernel):
    """A kernel that Triton compiled, whose block and shared memory it has settled."""

    def launch(self, grid: int | Sequence[int], args: Sequence[Any] = ()) -> Launch:
        """A launch of ``grid`` programs or tile blocks on the arguments of the Python function, in its order.

        Constants are among them (of Triton also the integers equal to 1 that it folds); those at the end may be left
        out.  They are no parameters of the machine code, but must be what it was compiled with.  What else the compiler
        took for granted of the arrays is not checked.  A tensor descriptor is one of Triton's, or its array alone.
        A program of a kernel with ``num_ctas`` is a cluster of so many blocks.
        Raises ``LaunchError`` for another constant, and as ``Kernel.launch``.
        """
        handed = self._handed
        block: int | Dim3 = handed.threads or self.binary.required_block or 1
        blocks = [programs * size for programs, size in zip(dim3(grid, "grid"), handed.cluster, strict=True)]
        cluster = handed.cluster if max(handed.cluster) > 1 else None
        attributes = LaunchAttributes(handed.cooperative, cluster, handed.pdl)
        return Launch(self, configuration_of(blocks, block, handed.shared_bytes, attributes), self._parameters(args))

    def _parts(self, argument: FunctionArgument, value: Any) -> tuple[Any, ...]:
        """Of a tensor descriptor its encoding, shape and strides in elements."""
        form = argument.tensor_map
        if form is None:
            return (value,)
        given = value if hasattr(value, "block_shape") else None
        array = value if given is None else given.base
        facts = array_facts(array)
        if facts is None:
            raise LaunchError(
                f"{self.name}: argument {argument.name} is of type {type(value).__name__}: it takes a TensorDescriptor "
                "of Triton, or a device array"
            )
        shape = facts.shape if given is None else tuple(given.shape)
        strides = given.strides if given is not None else [step // facts.dtype.itemsize for step in facts.strides]
        nan = getattr(given, "padding", "") == "nan"
        if getattr(given, "round_f32_to_tf32", False):
            form = form._replace(element=TF32)
        content = self.device.tensor_map(form, facts.address, shape, strides, nan=nan)
        kind = f"tensordesc_{form.element}_{form.swizzle}_{'x'.join(map(str, form.box))}{'_nan' if nan else ''}"
        return (Opaque(content, f"{kind}[{','.join(map(str, shape))}]", array), *shape, *strides)


class CutileKernel(TritonKernel):
    """A kernel that cuTile compiled."""

    def _parts(self, argument: FunctionArgument, value: Any) -> tuple[Any, ...]:  # noqa: ARG002 the value says it
        """Of an array address, shape and strides in elements; one with gaps goes by its bare address."""
        facts = array_facts(value)
        if facts is None:
            return (value,)
        address = value if facts.order or facts.address is None else np.uint64(facts.address)
        return (address, *facts.shape, *(stride // facts.dtype.itemsize for stride in facts.strides))


class NumbaKernel(_HandedKernel):
    """A kernel whose arrays are several parameters each."""

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), shared_bytes: int = 0
    ) -> Launch:
        """A launch of ``grid`` blocks of ``block`` threads on the arguments of the Python function.

        Arrays are device arrays of any library, contiguous in the order that the signature says: that is not checked.
        Raises ``LaunchError`` if arguments do not fit, and as ``Kernel.launch``.
        """
        return Launch(self, configuration_of(grid, block, shared_bytes), self._parameters(args))

    def _parts(self, argument: FunctionArgument, value: Any) -> tuple[Any, ...]:
        facts = array_facts(value)
        if facts is None:
            is_complex = argument.parameters[-1][1].endswith(".imag")
            return (complex(value).real, complex(value).imag) if is_complex else (value,)
        return (None, None, int(np.prod(facts.shape)), facts.dtype.itemsize, value, *facts.shape, *facts.strides)


class CuteKernel(_HandedKernel):
    """A kernel whose grid, block and parameters are formed by a host function of the CuTe DSL."""

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


def _described(value: Any) -> str:
    """An argument of a captured call, as the identity has it: no addresses."""
    facts = array_facts(value)
    if facts is not None:
        return facts.entry
    return repr(value) if isinstance(value, bool | int | float | str | np.generic) else type(value).__name__
