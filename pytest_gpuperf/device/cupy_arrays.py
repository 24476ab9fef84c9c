"""Arguments of a ``cupy.ElementwiseKernel``: arrays and their index as the structures that CuPy passes by value.

Layouts of CuPy 13 and 14 (``cupy/_core/_carray.pyx``, ``cupy/_core/include/cupy/carray.cuh``), all of 8-byte words: a
``CArray`` is address, elements, shape, strides in bytes; a ``CIndexer`` is elements, shape, room for an index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from pytest_gpuperf.compile.cupy_elementwise import ElementType, known_type, require_elementwise
from pytest_gpuperf.device.descriptors import Descriptor
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.kernel_arguments import ArrayFacts, array_facts

_WORD = 8
_NARROW = 1 << 31
"""Bytes of an array, or elements of an index, up to which CuPy's offsets have 32 bits."""
_MOST_BLOCKS = 0x7FFFFFFF


class CupyArray(Descriptor):
    """An array as a kernel of CuPy takes it: in a shape that its loop runs over."""

    declared_as = "CArray<T, axes, contiguous, narrow>"

    def __init__(self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        super().__init__(array)
        self.shape = shape
        self.strides = strides
        """Bytes; 0 along an axis that is repeated."""
        self.parameter_bytes = _WORD * (2 + 2 * len(shape))

    @property
    def _facts(self) -> ArrayFacts:
        facts = array_facts(self.array)
        assert facts is not None
        return facts

    @property
    def entry(self) -> str:
        facts, address = self._facts, self._facts.address
        alignment = "" if not address else f" align={min(address & -address, 256)}"
        return f"CArray {facts.dtype}[{_listed(self.shape)}] strides={_listed(self.strides)}{alignment}"

    def of(self, array: Any) -> CupyArray:
        return CupyArray(array, self.shape, self.strides)

    @cached_property
    def value(self) -> np.ndarray[Any, Any]:
        return _words(self._facts.address or 0, math.prod(self.shape), *self.shape, *self.strides)


class CupyIndex(Descriptor):
    """The index that a loop of CuPy's runs over."""

    declared_as = "CIndexer<axes, narrow>"
    follows_array = False

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(None)
        self.shape = shape
        self.parameter_bytes = _WORD * (1 + 2 * len(shape))

    @property
    def entry(self) -> str:
        return f"CIndexer [{_listed(self.shape)}]"

    def of(self, array: Any) -> CupyIndex:  # noqa: ARG002 it is of no array
        return self

    @cached_property
    def value(self) -> np.ndarray[Any, Any]:
        return _words(math.prod(self.shape), *self.shape, *(0 for _ in self.shape))


class ElementwiseCall(NamedTuple):
    """One call of an ElementwiseKernel, made ready."""

    types: tuple[ElementType, ...]
    axes: int
    """Of the index."""
    narrow: bool
    """Whether 32 bits are enough for the index."""
    arguments: tuple[Any, ...]
    """Structures and numbers, the index last."""
    grid: int
    block: int


def elementwise_call(kernel: Any, args: Sequence[Any], size: int | None, block_size: int) -> ElementwiseCall:
    """What CuPy does before it launches: broadcast, find the types, merge axes.

    Raises ``LaunchError``, and ``UnsupportedCupyKernel`` for a kernel of another kind.
    """
    require_elementwise(kernel)
    parameters = (*kernel.in_params, *kernel.out_params)
    if len(args) != len(parameters):
        raise LaunchError(
            f"{kernel.name} takes {len(parameters)} arguments, outputs included "
            f"({', '.join(one.name for one in parameters)}), and {len(args)} were given"
        )
    facts = [array_facts(value) for value in args]
    dtypes = tuple(_dtypes(kernel, parameters, facts))
    shape, views = _views(kernel, parameters, args, facts, size)
    total = math.prod(shape)
    if total == 0 or block_size < 1:
        raise LaunchError(f"{kernel.name}: there is nothing to launch for 0 elements or block_size={block_size}")
    types: list[ElementType] = []
    arguments: list[Any] = []
    for value, dtype, of, view in zip(args, dtypes, facts, views, strict=True):
        if of is None or view is None:
            types.append(ElementType(dtype))
            arguments.append(_number(kernel, value, dtype))
        else:
            types.append(ElementType(dtype, len(view[0]), _contiguous(*view, dtype.itemsize), _is_narrow(value, of)))
            arguments.append(CupyArray(value, *view))
    grid = min(_MOST_BLOCKS, -(-total // block_size))
    return ElementwiseCall(
        tuple(types), len(shape), total <= _NARROW, (*arguments, CupyIndex(shape)), grid, min(block_size, total)
    )


def _dtypes(kernel: Any, parameters: Sequence[Any], facts: Sequence[ArrayFacts | None]) -> Iterator[np.dtype[Any]]:
    """The type of each argument: of arrays their own, of numbers that of an array with the same letter."""
    letters: dict[str, np.dtype[Any]] = {}
    for parameter, of in zip(parameters, facts, strict=True):
        if of is None:
            continue
        wanted = letters.setdefault(parameter.ctype, of.dtype) if parameter.dtype is None else np.dtype(parameter.dtype)
        if wanted != of.dtype or not known_type(of.dtype):
            raise LaunchError(f"{kernel.name}: argument {parameter.name} is an array of {of.dtype}, not of {wanted}")
    for parameter in parameters:
        if parameter.dtype is None and parameter.ctype not in letters:
            raise LaunchError(f"{kernel.name}: no array tells the type {parameter.ctype} of {parameter.name}")
        yield letters[parameter.ctype] if parameter.dtype is None else np.dtype(parameter.dtype)


_View = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape and strides in bytes."""


def _views(
    kernel: Any, parameters: Sequence[Any], args: Sequence[Any], facts: Sequence[ArrayFacts | None], size: int | None
) -> tuple[tuple[int, ...], list[_View | None]]:
    """The shape of the loop, and each array in that shape; a ``raw`` one in its own; None for a number."""
    own = [None if of is None else (of.shape, _strides(value, of)) for value, of in zip(args, facts, strict=True)]
    looped = {n: view for n, view in enumerate(own) if view is not None and not parameters[n].raw}
    if bool(looped) == (size is not None):
        raise LaunchError(f"{kernel.name}: size= is for kernels whose arrays are all raw, and they need it")
    if size is not None:
        return (size,), own
    try:
        shape = np.broadcast_shapes(*(view[0] for view in looped.values()))
    except ValueError as problem:
        raise LaunchError(f"{kernel.name}: {problem}") from None
    for n, view in looped.items():
        if n >= len(kernel.in_params) and view[0] != shape:
            raise LaunchError(f"{kernel.name}: output {parameters[n].name} has the shape {view[0]}, not {shape}")
        looped[n] = (shape, _repeated(view, shape))
    if kernel.reduce_dims:
        sizes = {n: facts[n].dtype.itemsize for n in looped}  # type: ignore[union-attr]
        shape, looped = _merged(shape, looped, sizes)
    return shape, [looped.get(n, view) for n, view in enumerate(own)]


def _strides(value: Any, of: ArrayFacts) -> tuple[int, ...]:
    interface = getattr(value, "__cuda_array_interface__", None)
    strides = value.strides if interface is None else interface.get("strides")
    if strides is not None:
        return tuple(int(stride) for stride in strides)
    return tuple(of.dtype.itemsize * math.prod(of.shape[axis + 1 :]) for axis in range(len(of.shape)))


def _repeated(view: _View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array that is broadcast to ``shape``."""
    missing = len(shape) - len(view[0])
    return (0,) * missing + tuple(
        0 if own == 1 and there != 1 else stride
        for own, stride, there in zip(*view, shape[missing:], strict=True)
    )  # fmt: skip


def _contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether elements follow each other in C order; an axis of one element may have any stride."""
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def _merged(
    shape: tuple[int, ...], views: dict[int, _View], sizes: dict[int, int]
) -> tuple[tuple[int, ...], dict[int, _View]]:
    """Axes merged as CuPy merges them: all where all arrays are contiguous, else neighbours that follow each other."""
    scattered = [view for n, view in views.items() if not _contiguous(*view, sizes[n])]
    if len(shape) <= 1 or (scattered and len(shape) == 2):
        return shape, views
    if not scattered:
        total = math.prod(shape)
        return (total,), {n: ((total,), (sizes[n],)) for n in views}
    lengths, kept = list(shape), list[int]()
    last = -1
    for axis in (axis for axis, length in enumerate(shape) if length != 1):
        if last >= 0 and any(strides[axis] * lengths[axis] != strides[last] for _, strides in scattered):
            kept.append(last)
        elif last >= 0:
            lengths[axis] *= lengths[last]
        last = axis
    kept += [last] if last >= 0 else []
    merged = tuple(lengths[axis] for axis in kept)
    return merged, {n: (merged, tuple(strides[axis] for axis in kept)) for n, (_, strides) in views.items()}


def _is_narrow(value: Any, of: ArrayFacts) -> bool:
    reach = sum((length - 1) * abs(stride) for length, stride in zip(of.shape, _strides(value, of), strict=True))
    return max(reach + of.dtype.itemsize, math.prod(of.shape) * of.dtype.itemsize) <= _NARROW


def _number(kernel: Any, value: Any, dtype: np.dtype[Any]) -> np.generic:
    try:
        return cast(np.generic, np.asarray(value).astype(dtype)[()])
    except (TypeError, ValueError) as problem:
        raise LaunchError(f"{kernel.name}: {value!r} is no {dtype}: {problem}") from None


def _words(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(np.void(np.array(numbers, dtype=np.int64).tobytes()))


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
