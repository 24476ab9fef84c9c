"""Arguments of a ``cupy.ElementwiseKernel``: arrays and their index as the structures that CuPy passes by value.

Layouts of CuPy 13 and 14 (``cupy/_core/_carray.pyx``, ``cupy/_core/include/cupy/carray.cuh``), all of 8-byte words: a
``CArray`` is address, elements, shape, strides in bytes; a ``CIndexer`` is elements, shape, room for an index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from pytest_gpuperf.compile.cupy_elementwise import ElementType, known_type, require_elementwise
from pytest_gpuperf.device.arguments import ArrayFacts, Structure, array_facts
from pytest_gpuperf.device.device_errors import LaunchError

_NARROW = 1 << 31
"""Bytes of an array, or elements of an index, up to which CuPy's offsets have 32 bits."""
_MOST_BLOCKS = 0x7FFFFFFF


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
        names = ", ".join(one.name for one in parameters)
        raise LaunchError(
            f"{kernel.name} takes {len(parameters)} arguments, outputs included ({names}), and {len(args)} were given"
        )
    facts = [array_facts(value) for value in args]
    dtypes = tuple(_dtypes(kernel, parameters, facts))
    shape, views = _views(kernel, parameters, facts, size)
    total = math.prod(shape)
    if total == 0 or block_size < 1:
        raise LaunchError(f"{kernel.name}: there is nothing to launch for 0 elements or block_size={block_size}")
    types = tuple(
        ElementType(dtype) if of is None or view is None
        else ElementType(dtype, view.ndim, view.flags.c_contiguous, _is_narrow(of))
        for dtype, of, view in zip(dtypes, facts, views, strict=True)
    )  # fmt: skip
    arguments = (
        _number(kernel, value, dtype) if view is None else _c_array(value, view)
        for value, dtype, view in zip(args, dtypes, views, strict=True)
    )
    index = Structure(_words(total, *shape, *(0 for _ in shape)), f"CIndexer [{_listed(shape)}]")
    grid, block = min(_MOST_BLOCKS, -(-total // block_size)), min(block_size, total)
    return ElementwiseCall(types, len(shape), total <= _NARROW, (*arguments, index), grid, block)


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


def _views(
    kernel: Any, parameters: Sequence[Any], facts: Sequence[ArrayFacts | None], size: int | None
) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of the loop, and of each array a view without data in that shape, of a number None.

    A ``raw`` array is seen in its own shape.
    """
    views = [None if of is None else _without_data(of.dtype, of.shape, of.strides) for of in facts]
    looped = {n: view for n, view in enumerate(views) if view is not None and not parameters[n].raw}
    if bool(looped) == (size is not None):
        raise LaunchError(f"{kernel.name}: size= is for kernels whose arrays are all raw, and they need it")
    if size is not None:
        return (size,), views
    try:
        shape = np.broadcast_shapes(*(view.shape for view in looped.values()))
    except ValueError as problem:
        raise LaunchError(f"{kernel.name}: {problem}") from None
    for n, view in looped.items():
        if n >= len(kernel.in_params) and view.shape != shape:
            raise LaunchError(f"{kernel.name}: output {parameters[n].name} has the shape {view.shape}, not {shape}")
        looped[n] = np.broadcast_to(view, shape)
    if kernel.reduce_dims:
        shape, looped = _merged(shape, looped)
    return shape, [looped.get(n, view) for n, view in enumerate(views)]


def _without_data(dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides, writeable=False)


def _merged(shape: tuple[int, ...], views: Mapping[int, Any]) -> tuple[tuple[int, ...], dict[int, Any]]:
    """Axes merged as CuPy merges them: all where all arrays are contiguous, else neighbours that follow each other."""
    scattered = [view.strides for view in views.values() if not view.flags.c_contiguous]
    if len(shape) <= 1 or (scattered and len(shape) == 2):
        return shape, dict(views)
    lengths, kept = list(shape), list[int]()
    for axis in (axis for axis, length in enumerate(shape) if length != 1):
        if kept and all(strides[axis] * shape[axis] == strides[kept[-1]] for strides in scattered):
            lengths[axis] *= lengths[kept.pop()]
        kept.append(axis)
    if not scattered:
        merged: tuple[int, ...] = (math.prod(shape),)
        return merged, {n: _without_data(view.dtype, merged, [view.itemsize]) for n, view in views.items()}
    merged = tuple(lengths[axis] for axis in kept)
    return merged, {
        n: _without_data(view.dtype, merged, [view.strides[axis] for axis in kept]) for n, view in views.items()
    }


def _is_narrow(of: ArrayFacts) -> bool:
    reach = sum((length - 1) * abs(stride) for length, stride in zip(of.shape, of.strides, strict=True))
    return max(reach + of.dtype.itemsize, math.prod(of.shape) * of.dtype.itemsize) <= _NARROW


def _c_array(array: Any, view: Any) -> Structure:
    content = _words(view.size, *view.shape, *view.strides)
    return Structure(content, f"CArray {view.dtype}[{_listed(view.shape)}] strides={_listed(view.strides)}", array)


def _number(kernel: Any, value: Any, dtype: np.dtype[Any]) -> np.generic:
    try:
        return cast(np.generic, np.asarray(value).astype(dtype)[()])
    except (TypeError, ValueError) as problem:
        raise LaunchError(f"{kernel.name}: {value!r} is no {dtype}: {problem}") from None


def _words(*numbers: int) -> bytes:
    return np.array(numbers, dtype=np.int64).tobytes()


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
