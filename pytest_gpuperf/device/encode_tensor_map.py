"""``cuTensorMapEncodeTiled``, called in the driver's library.

Not by ``cuda.bindings``: the driver wants 64-byte alignment of the descriptor, and that of a Python object is 16
(NVIDIA/cuda-python, pull request 1692).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.tensor_maps import (
    DATA_TYPES,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
    TENSOR_MAP_BYTES,
    Tiling,
)

ALIGNMENT = 64


def encode_tensor_map(library: Any, address: int, how: Tiling) -> bytes:
    """The 128 bytes of the descriptor; ``library`` is ``libcuda``, with a context current in this thread.

    Raises ``LaunchError`` if the driver has no tensor maps, or refuses this one.
    """
    encode = getattr(library, "cuTensorMapEncodeTiled", None)
    if encode is None:
        raise LaunchError("gpu.tensor_map: this driver knows no tensor maps: they came with CUDA 12.0")
    room = ctypes.create_string_buffer(TENSOR_MAP_BYTES + ALIGNMENT)
    start = -ctypes.addressof(room) % ALIGNMENT
    status = encode(
        ctypes.c_void_p(ctypes.addressof(room) + start), ctypes.c_int(DATA_TYPES[how.data_type]),
        ctypes.c_uint32(len(how.shape)), ctypes.c_void_p(address), _innermost_first(ctypes.c_uint64, how.shape),
        _innermost_first(ctypes.c_uint64, how.strides), _innermost_first(ctypes.c_uint32, how.box),
        _innermost_first(ctypes.c_uint32, how.steps), ctypes.c_int(INTERLEAVES[how.interleave]),
        ctypes.c_int(SWIZZLES[how.swizzle]), ctypes.c_int(L2_PROMOTIONS[how.l2_promotion]),
        ctypes.c_int(OOB_FILLS[how.oob_fill]),
    )  # fmt: skip
    if status:
        raise LaunchError(f"gpu.tensor_map: the driver refuses {how} (CUresult {status}): it may want a newer GPU")
    return room.raw[start : start + TENSOR_MAP_BYTES]


def _innermost_first(kind: Any, numbers: Sequence[int]) -> Any:
    """At least one element: a tensor of one axis has no strides, and the driver wants an address all the same."""
    return (kind * max(len(numbers), 1))(*reversed(numbers))
