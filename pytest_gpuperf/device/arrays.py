"""Arrays on the GPU, as CuPy makes them; random ones are the same for a seed on every GPU and CuPy version.

Numbers come from SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014), used
as a counter-based generator: element ``i`` depends on the seed and on ``i`` alone.  Not for cryptography or simulation.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pytest_gpuperf.device.number_types import IN_BYTES, number_type, stored, to_bytes
from pytest_gpuperf.device.result_comparison import FORMATS

_OF_ML_DTYPES = 2
"""``isbuiltin`` of a type that a package has registered."""
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
POISON = 0xFF
"""Every byte of an ``empty`` array: NaN as a floating-point number, -1 as an integer."""

_MIX = """
    unsigned long long z = seed + (unsigned long long)(i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z = z ^ (z >> 31);
"""
UNIFORM = f"""{_MIX}
    double u = (double)(z >> (64 - bits)) * step;
    out = (T)__dadd_rn(low, __dmul_rn(u, span));
"""
INTEGERS = f"""{_MIX}
    out = (T)(low + (span ? z % span : z));
"""


def stream_of(seed: int) -> int:
    """Start of a seed's numbers: mixed, so that neighbouring seeds have nothing in common.

    A seed may be of NumPy.  Raises ``TypeError`` for what is no whole number.
    """
    z = (operator.index(seed) * _GOLDEN + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class CupyArrays:
    """``Arrays`` by CuPy."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        drawn = "uint64 seed, int32 bits, float64 step, float64 low, float64 span"
        self._uniform = cupy.ElementwiseKernel(drawn, "T out", UNIFORM, "gpuperf_uniform")
        self._whole = cupy.ElementwiseKernel("uint64 seed, uint64 low, uint64 span", "T out", INTEGERS, "gpuperf_whole")

    def random(
        self, shape: Any, dtype: Any = "float32", *, seed: int, low: float | None = None, high: float | None = None
    ) -> Any:
        """As ``gpu.random``.  Raises ``ValueError`` for a range that the type cannot hold, too."""
        kind = number_type(dtype)
        if kind.kind == "b":
            return self._integers(shape, np.dtype("uint8"), seed, low, 2 if high is None else high).view(kind)
        if kind.kind in "iu":
            return self._integers(shape, kind, seed, low, 100 if high is None else high)
        if kind.kind == "c":
            lengths = np.broadcast_shapes(shape)
            parts = self._floats((*lengths, 2), np.dtype(f"float{4 * kind.itemsize}"), seed, low, high)
            return parts.view(kind).reshape(lengths)
        if kind.kind == "f" or kind.isbuiltin == _OF_ML_DTYPES:
            return self._floats(shape, kind, seed, low, high)
        raise ValueError(f"gpu.random makes numbers, not {kind}")

    def _floats(self, shape: Any, kind: np.dtype[Any], seed: int, low: float | None, high: float | None) -> Any:
        first, last = float(low or 0.0), 1.0 if high is None else float(high)
        if not (np.isfinite(first) and np.isfinite(last) and first < last):
            raise ValueError(f"gpu.random: low={first:g} and high={last:g} are no range")
        drawn = kind if kind.itemsize >= 4 else np.dtype("float32")  # narrower types are rounded from it
        bits, _ = FORMATS.get(kind.name, FORMATS["float32"])
        out = self._cupy.empty(shape, drawn)
        if out.size:
            self._uniform(np.uint64(stream_of(seed)), np.int32(bits), 2.0**-bits, first, last - first, out)
        if kind.name in IN_BYTES:
            return self.array(self._cupy.asnumpy(out).astype(kind))
        return out if drawn == kind else out.astype(kind)

    def _integers(self, shape: Any, kind: np.dtype[Any], seed: int, low: float | None, high: float) -> Any:
        first, last = int(low or 0), int(high)
        limits = np.iinfo(kind)
        if not limits.min <= first < last <= limits.max + 1:
            raise ValueError(f"gpu.random: low={first} and high={last} are no range of {kind}")
        out = self._cupy.empty(shape, kind)
        if out.size:
            numbers = np.uint64(stream_of(seed)), np.uint64(first & _MASK), np.uint64((last - first) & _MASK)
            self._whole(*numbers, out)
        return out

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        """Filled with ``POISON``, so that neither luck nor an earlier result passes for what a kernel left out."""
        out = self._cupy.empty(*stored(shape, dtype))
        if out.nbytes:
            out.data.memset_async(POISON, out.nbytes)
        return out

    def zeros(self, shape: Any, dtype: Any = "float32") -> Any:
        return self._cupy.zeros(*stored(shape, dtype))

    def full(self, shape: Any, value: Any, dtype: Any = "float32") -> Any:
        kind = number_type(dtype)
        in_bytes = kind.name in IN_BYTES
        return self.array(np.full(shape, value, kind)) if in_bytes else self._cupy.full(shape, value, kind)

    def array(self, host: Any) -> Any:
        return self._cupy.array(to_bytes(host) if isinstance(host, np.ndarray) else host)

    def empty_like(self, array: Any) -> Any:
        return self.empty(array.shape, array.dtype)
