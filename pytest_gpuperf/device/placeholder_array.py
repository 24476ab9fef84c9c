"""An array without data: shape, type and strides of what would be on the GPU.

Views have the metadata that NumPy would give them.  Whatever needs an element raises ``DeviceNeeded``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from pytest_gpuperf.device.device_errors import DeviceNeeded

_DATA = frozenset(name for name in dir(np.ndarray) if not name.startswith("_")) | {"get", "set"}
"""Names that NumPy and CuPy arrays offer; those not defined here need data."""
_METADATA = frozenset({"shape", "dtype", "strides", "flags", "ndim", "size", "itemsize", "nbytes"})
_VIEWS = frozenset({"transpose", "swapaxes", "squeeze", "view"})
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OPERATORS = (
    *(f"{prefix}{name}" for name in _BINARY for prefix in ("", "r", "i")),
    *("neg", "pos", "abs", "invert", "divmod", "lt", "le", "gt", "ge", "eq", "ne"),
    *("bool", "float", "int", "complex", "index", "round", "contains", "iter", "setitem", "copy", "deepcopy"),
    *("array", "array_function", "array_ufunc", "dlpack", "dlpack_device"),
)


def without_data(shape: Any, dtype: Any) -> PlaceholderArray:
    """A C-contiguous array of this shape.  Raises ``TypeError`` and ``ValueError`` as NumPy does."""
    lengths = tuple(np.broadcast_shapes(shape))
    item = np.empty(1, dtype)
    strides = [
        item.itemsize * math.prod(max(length, 1) for length in lengths[axis + 1 :]) for axis in range(len(lengths))
    ]
    return PlaceholderArray(np.lib.stride_tricks.as_strided(item, lengths, strides, writeable=False))


class PlaceholderArray:
    """Made by ``without_data``.

    Holds a NumPy view that reaches beyond the one element behind it: only views are made of it, and metadata read.
    """

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays

    def __init__(self, view: Any) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view)

    def astype(self, dtype: Any) -> PlaceholderArray:
        return without_data(self.shape, dtype)

    def copy(self) -> PlaceholderArray:
        return without_data(self.shape, self.dtype)

    def reshape(self, *shape: Any) -> PlaceholderArray:
        """C-contiguous, though NumPy would make a strided view of some strided arrays."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return without_data(_resolved(lengths, self.size), self.dtype)

    def flatten(self) -> PlaceholderArray:
        return self.reshape(-1)

    ravel = flatten

    def __getitem__(self, index: Any) -> PlaceholderArray:
        parts = index if isinstance(index, tuple) else (index,)
        basic = (int, np.integer, slice, type(None), type(Ellipsis))
        if any(isinstance(part, bool) or not isinstance(part, basic) for part in parts):
            raise DeviceNeeded.for_("an array is indexed by data")
        whole = parts if Ellipsis in parts else (*parts, Ellipsis)  # an ellipsis makes a view of a single element, too
        return PlaceholderArray(self._view[whole])

    def __getattr__(self, name: str) -> Any:
        if name in _METADATA:
            return getattr(self._view, name)
        if name in _VIEWS:
            return lambda *given: PlaceholderArray(getattr(self._view, name)(*given))
        if name == "T":
            return PlaceholderArray(self._view.T)
        if name in _DATA:
            raise DeviceNeeded.for_(f"the test uses the data of an array ({name})")
        raise AttributeError(f"an array has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} without data: there is no GPU>"


def _refusing(operator: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise DeviceNeeded.for_(f"the test uses the data of an array ({operator})")

    return refuse


for _operator in _OPERATORS:
    setattr(PlaceholderArray, f"__{_operator}__", _refusing(_operator))


def _resolved(lengths: Sequence[int], size: int) -> tuple[int, ...]:
    """A shape with its -1 filled in.  Raises ``ValueError`` if it does not hold ``size`` elements."""
    known = math.prod(length for length in lengths if length != -1)
    filled = tuple(size // known if length == -1 and known else int(length) for length in lengths)
    if math.prod(filled) != size or min(filled, default=0) < 0 or list(lengths).count(-1) > 1:
        raise ValueError(f"cannot reshape an array of {size} elements into {tuple(lengths)}")
    return filled
