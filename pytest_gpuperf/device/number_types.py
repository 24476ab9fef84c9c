"""Number types that NumPy lacks, by the package ``ml_dtypes``: bfloat16, fp8 and fp4; and how their arrays are stored.

CuPy has arrays of bfloat16.  Those of fp8 and fp4 are arrays of bytes; of fp4 two values lie in each, as PyTorch's
``float4_e2m1fn_x2`` has them, the first in the lower half.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from pytest_gpuperf.arguments import BadArgument

FP4 = "float4_e2m1fn"
IN_BYTES = ("float8_e4m3fn", "float8_e5m2", FP4)
"""Types that are stored as bytes."""
_NARROW = ("bfloat16", *IN_BYTES)


def number_type(dtype: Any) -> np.dtype[Any]:
    """The type, or PyTorch's of its name, as NumPy or ``ml_dtypes`` have it.  Raises ``BadArgument`` where none has."""
    name = str(dtype).removeprefix("torch.")
    given = _of_ml_dtypes(name) if name in _NARROW else name if name != str(dtype) else dtype
    try:
        kind: np.dtype[Any] = np.dtype(given)
    except TypeError:
        raise BadArgument(f"there is no number type {name}: use NumPy's names, or {', '.join(_NARROW)}") from None
    return kind


def _of_ml_dtypes(name: str) -> Any:
    try:
        return getattr(importlib.import_module("ml_dtypes"), name)
    except ImportError:
        raise BadArgument(f"NumPy has no {name}: pip install ml_dtypes") from None


def stored(shape: Any, dtype: Any) -> tuple[Any, np.dtype[Any]]:
    """Shape and type of the array that holds the values.  Raises ``BadArgument`` for half a byte."""
    kind = number_type(dtype)
    if kind.name not in IN_BYTES:
        return shape, kind
    lengths = np.broadcast_shapes(shape)
    if kind.name == FP4:
        if not lengths or lengths[-1] % 2:
            raise BadArgument(f"{FP4} has two values in a byte: make the last axis of shape {lengths} even")
        lengths = (*lengths[:-1], lengths[-1] // 2)
    return lengths, np.dtype("uint8")


def to_bytes(host: Any) -> Any:
    """A NumPy array as it is stored."""
    if host.dtype.name not in IN_BYTES:
        return host
    lengths, _ = stored(host.shape, host.dtype)
    bits = host.view("uint8")
    return bits if lengths == host.shape else (bits[..., ::2] & 15) | (bits[..., 1::2] << 4)


def from_bytes(host: Any, dtype: Any) -> Any:
    """The values of ``dtype`` that a NumPy array stores."""
    kind, bits = number_type(dtype), np.array(host, order="C")
    if kind.name == FP4:
        bits = np.stack([bits & 15, bits >> 4], axis=-1).reshape(*bits.shape[:-1], -1)
    return bits.view(kind)


def tensor_to_host(tensor: Any) -> Any:
    """A tensor of PyTorch as NumPy; waits for its stream."""
    data, name = tensor.detach().cpu(), str(tensor.dtype).removeprefix("torch.").removesuffix("_x2")
    if name not in _NARROW:
        return data.numpy()
    values = from_bytes(data.reshape(-1).view(sys.modules["torch"].uint8).numpy(), name)
    return values.reshape(*data.shape[:-1], -1) if data.ndim else values[0]
