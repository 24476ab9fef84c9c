"""The device that is handed out where there is no GPU, so that launches can be formed and validated.

The first use of data, of a time or of the device itself raises ``DeviceNeeded``.  An array has shape, type and strides
of the one that would be on the GPU; views have the metadata that NumPy would give them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.device.interface import TENSOR_MAP_BYTES, LaunchLog, LoadedKernel
from pytest_gpuperf.device.number_types import stored, to_bytes
from pytest_gpuperf.model.device_facts import DeviceState
from pytest_gpuperf.model.evidence import KernelBinary

_METADATA = frozenset({"shape", "dtype", "strides", "flags", "ndim", "size", "itemsize", "nbytes"})
_VIEWS = frozenset({"transpose", "swapaxes", "squeeze", "view"})
_DATA = frozenset(name for name in dir(np.ndarray) if not name.startswith("_")) | {"get", "set"}
"""Names that NumPy and CuPy arrays offer; those not defined here need data."""
_OPERATORS = {name for name in dir(np.ndarray) if name[:2] == "__" and name[:8] != "__array_"} - set(dir(object)) | {
    "__array__", "__array_function__", "__array_ufunc__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
    "__round__",
}  # fmt: skip


def _needs(what: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise DeviceNeeded(what)

    return refuse


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

    def data_ptr(self) -> int:
        """As of a tensor: Triton asks for it to specialise a kernel for aligned pointers."""
        return 0

    def astype(self, dtype: Any, **_: Any) -> PlaceholderArray:
        return without_data(self.shape, dtype)

    def copy(self, **_: Any) -> PlaceholderArray:
        return without_data(self.shape, self.dtype)

    def reshape(self, *shape: Any, **_: Any) -> PlaceholderArray:
        """C-contiguous, though NumPy would make a strided view of some strided arrays."""
        return PlaceholderArray(self.copy()._view.reshape(*shape))

    def flatten(self, *_: Any, **__: Any) -> PlaceholderArray:
        return self.reshape(-1)

    ravel = flatten

    def __getitem__(self, index: Any) -> PlaceholderArray:
        parts = index if isinstance(index, tuple) else (index,)
        basic = (int, np.integer, slice, type(None), type(Ellipsis))
        if any(isinstance(part, bool) or not isinstance(part, basic) for part in parts):
            raise DeviceNeeded("an array is indexed by data")
        whole = parts if Ellipsis in parts else (*parts, Ellipsis)  # an ellipsis makes a view of a single element, too
        return PlaceholderArray(self._view[whole])

    def __getattr__(self, name: str) -> Any:
        if name in _METADATA:
            return getattr(self._view, name)
        if name in _VIEWS:
            return lambda *given, **named: PlaceholderArray(getattr(self._view, name)(*given, **named))
        if name == "T":
            return self.transpose()
        if name in _DATA:
            raise DeviceNeeded(f"the test uses the data of an array ({name})")
        raise AttributeError(f"an array has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} without data: there is no GPU>"


for _operator in _OPERATORS - vars(PlaceholderArray).keys():
    setattr(PlaceholderArray, _operator, _needs(f"the test uses the data of an array ({_operator.strip('_')})"))


class PlaceholderArrays:
    """Makes arrays without data; everything but shape and type is ignored."""

    @staticmethod
    def random(shape: Any, dtype: Any = "float32", **_: Any) -> PlaceholderArray:
        return without_data(*stored(shape, dtype))

    empty = zeros = random
    full = staticmethod(lambda shape, value, dtype="float32": without_data(*stored(shape, dtype)))
    empty_like = staticmethod(lambda array: without_data(*stored(array.shape, array.dtype)))

    def array(self, host: Any) -> PlaceholderArray:
        return self.empty_like(host if isinstance(host, PlaceholderArray) else to_bytes(np.asarray(host)))


class PlaceholderDevice:
    """Stands in for ``Device`` where there is none; its facts are nominal for ``arch``."""

    def __init__(self, arch: str = "sm_90") -> None:
        self.facts = nominal_facts(arch)
        self.arrays = PlaceholderArrays()
        self.launches = LaunchLog()

    def load(self, binary: KernelBinary) -> LoadedKernel:
        raise DeviceNeeded(f"{binary.name} is launched")

    @property
    def stream_pointer(self) -> int:
        raise DeviceNeeded("the test asks for the GPU's stream")

    tensor_map = staticmethod(lambda *_, **__: bytes(TENSOR_MAP_BYTES))
    timer = staticmethod(_needs("the test is timed"))
    current = staticmethod(_needs("a workload runs"))
    capture = staticmethod(_needs("a launch of another library is captured"))
    synchronize = staticmethod(_needs("the test waits for the GPU"))
    bytes_of = staticmethod(_needs("the memory of a workload is measured"))
    profiler_range = staticmethod(_needs("the test is profiled"))
    lock = staticmethod(_needs("the test takes the GPU for itself"))
    peak = staticmethod(_needs("a peak is measured"))
    to_host = staticmethod(_needs("the test reads the data of an array"))

    fault = staticmethod(str)  # nothing has run, and nothing is known of a GPU that is not there
    is_idle = staticmethod(lambda: True)
    state = staticmethod(DeviceState)
    release_unused = staticmethod(lambda: None)
