"""Copies, poison and small errors for the arrays that a workload reads and writes: of CuPy, PyTorch or NumPy.

Only arrays of exactly these types are taken.  A subclass may compute when it is looked at, which is no result yet; and
nothing here calls a method that an object brought along itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from pytest_gpuperf.device.arrays import POISON

HALF_BYTES = 2
_CONSTANTS = (int, float, complex, bool, str, bytes, type(None))


class NotPlain(TypeError):
    """What a workload reads or returns is no plain array: the message says what it is."""


class PlainArrays:
    """Operations on the arrays of one device; all of them are enqueued on the current stream."""

    def __init__(self, own: type) -> None:
        """``own`` is the type that the device's own arrays have."""
        self._own = own

    def is_plain(self, value: Any) -> bool:
        return type(value) is self._own or (_is_tensor(value) and bool(value.is_cuda))

    def map(self, value: Any, function: Callable[[Any], Any]) -> Any:
        """``function`` of every array in tuples, lists and dicts; numbers and text stay.  Raises ``NotPlain``."""
        if self.is_plain(value):
            return function(value)
        if isinstance(value, tuple | list):
            return tuple(self.map(one, function) for one in value)
        if type(value) is dict:
            return {key: self.map(one, function) for key, one in value.items()}
        if type(value) in _CONSTANTS:
            return value
        raise NotPlain(f"{type(value).__module__}.{type(value).__qualname__}")

    def copy(self, array: Any) -> Any:
        return _torch().clone(array).detach() if _is_tensor(array) else self._own.copy(array)  # type: ignore[attr-defined]

    def assign(self, target: Any, source: Any) -> None:
        """Fill ``target`` with the elements of ``source``, which has its shape and type."""
        if _is_tensor(target):
            with _torch().no_grad():
                _torch().Tensor.copy_(target, source)
        else:
            target[...] = source

    def poison(self, array: Any) -> None:
        """Let every byte be what those of ``gpu.empty`` are; of an array with gaps, every element NaN, -1 or True."""
        if _is_tensor(array):
            _poison_tensor(array.detach())
            return
        packed = array if array.flags.c_contiguous else array.T
        if array.size and packed.flags.c_contiguous:
            packed.reshape(-1).view("uint8")[...] = POISON
        elif array.size:
            array[...] = np.nan if array.dtype.kind in "fc" else np.array(-1).astype(array.dtype)[()]

    def equal(self, one: Any, other: Any) -> bool:
        """Whether all bytes are the same.  Waits."""
        first, second = self._bytes(one), self._bytes(other)
        return bool((first == second).all()) if first.shape == second.shape else False

    def _bytes(self, array: Any) -> Any:
        """In one dimension; of an array with gaps, those of a copy."""
        if _is_tensor(array):
            return _torch().Tensor.view(array.detach().contiguous().reshape(-1), _torch().uint8)
        packed = array if array.flags.c_contiguous else self._own.copy(array)  # type: ignore[attr-defined]
        return packed.reshape(-1).view("uint8")

    def same(self, one: Any, other: Any) -> bool:
        """Whether two of one structure have equal arrays."""
        first, second = list[Any](), list[Any]()
        self.map(one, first.append)
        self.map(other, second.append)
        return len(first) == len(second) and all(map(self.equal, first, second))

    def shifted(self, array: Any, by: float) -> Any:
        """A copy that is off by the fraction ``by``, integers by one, bool the other way round."""
        if _is_tensor(array):
            torch = _torch()
            if array.dtype == torch.bool:
                return torch.logical_not(array)
            floating = array.is_floating_point() or array.is_complex()
            return (array * (1 + by) if floating else array + 1).to(array.dtype)
        if array.dtype.kind == "b":
            return ~array
        return (array * array.dtype.type(1 + by) if array.dtype.kind in "fc" else array + array.dtype.type(1)).astype(
            array.dtype
        )

    def has_short_numbers(self, array: Any) -> bool:
        """Whether its elements are floating-point numbers of two bytes or fewer."""
        floating = array.is_floating_point() if _is_tensor(array) else array.dtype.kind == "f"
        return bool(floating and array.itemsize <= HALF_BYTES)

    def overlap(self, one: Any, other: Any) -> bool:
        """Whether the two share memory, from the first byte to the last of each."""
        (first, end), (start, last) = _span(one), _span(other)
        return first < last and start < end

    def described(self, array: Any) -> str:
        """``cupy float32[1024,32]``"""
        library = type(array).__module__.partition(".")[0]
        return f"{library} {str(array.dtype).removeprefix('torch.')}[{','.join(map(str, array.shape))}]"


def _poison_tensor(tensor: Any) -> None:
    torch = _torch()
    if tensor.is_contiguous():
        torch.Tensor.view(tensor.reshape(-1), torch.uint8).fill_(POISON)
    else:
        value = float("nan") if tensor.is_floating_point() or tensor.is_complex() else -1
        torch.Tensor.copy_(tensor, torch.full((), value, device=tensor.device).to(tensor.dtype))


def _span(array: Any) -> tuple[int, int]:
    if _is_tensor(array):
        start = int(_torch().Tensor.data_ptr(array))
    elif isinstance(array, np.ndarray):
        start = int(array.__array_interface__["data"][0])
    else:
        start = int(array.data.ptr)
    return start, start + int(array.nbytes)


def _torch() -> Any:
    return sys.modules["torch"]


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(value) is cast(Any, torch).Tensor
