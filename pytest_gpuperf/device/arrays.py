"""Arrays on the GPU, as CuPy makes them; random ones are the same for a seed on every GPU."""

from __future__ import annotations

from typing import Any


class CupyArrays:
    """``Arrays`` by CuPy."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def random(self, shape: Any, dtype: Any = "float32", *, seed: int, low: float | None = None,
               high: float | None = None) -> Any:  # fmt: skip
        """Uniform in [low, high): [0, 1) for floating-point types, [0, 100) for integers, false or true for bool.

        Made on the device by a counter-based generator, so that the numbers depend on seed, shape and type
        alone.  Raises ``ValueError`` for an empty range or a type that is no number.
        """
        cupy = self._cupy
        kind = cupy.dtype(dtype)
        if kind.kind not in "fiubc":
            raise ValueError(f"gpu.random makes numbers, not {kind}")
        first = 0.0 if low is None else low
        last = high if high is not None else {"f": 1.0, "c": 1.0, "b": 2.0}.get(kind.kind, 100.0)
        if not first < last:
            raise ValueError(f"gpu.random: low={first} is not below high={last}")
        generator = cupy.random.Generator(cupy.random.Philox4x3210(seed))
        if kind.kind in "iub":
            return generator.integers(int(first), int(last), size=shape).astype(kind)
        if kind.kind == "c":
            parts = [self._uniform(generator, shape, "float64", first, last) for _ in range(2)]
            return (parts[0] + 1j * parts[1]).astype(kind)
        return self._uniform(generator, shape, kind, first, last)

    def _uniform(self, generator: Any, shape: Any, kind: Any, low: float, high: float) -> Any:
        """In place and in the type asked for, since arrays of gigabytes are common."""
        drawn = self._cupy.dtype(kind) if self._cupy.dtype(kind).itemsize >= 4 else self._cupy.dtype("float32")
        values = generator.random(size=shape, dtype=drawn)
        if (low, high) != (0.0, 1.0):
            values *= drawn.type(high - low)
            values += drawn.type(low)
        return values if drawn == kind else values.astype(kind)

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        return self._cupy.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any = "float32") -> Any:
        return self._cupy.zeros(shape, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = "float32") -> Any:
        return self._cupy.full(shape, value, dtype)

    def empty_like(self, array: Any) -> Any:
        return self._cupy.empty(array.shape, array.dtype)

    def array(self, host: Any) -> Any:
        return self._cupy.asarray(host)
