"""Errors in units in the last place, of results against a reference that is more precise.  Pure.

One unit is the distance of neighbours in the result's format where the reference lies: 2^(e - p + 1) for a reference in
[2^e, 2^(e + 1)) and p bits of precision, and that of subnormal numbers below them (J.-M. Muller, "On the definition of
ulp(x)", INRIA research report 5504, 2005).  A correctly rounded result is within 0.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class _Format(NamedTuple):
    precision: int
    """Bits, the implicit one included."""
    least: int
    """Exponents of the smallest normal number, and of the largest."""
    most: int


FORMATS = {
    "float16": _Format(11, -14, 15), "bfloat16": _Format(8, -126, 127), "float32": _Format(24, -126, 127),
    "float64": _Format(53, -1022, 1023),
}  # fmt: skip
"""IEEE 754's, and bfloat16."""


class UlpError(float):
    """The largest error of an array, in units in the last place."""

    quantile: float
    """That which the share asked for of all elements does not exceed."""
    share: float
    """That share, 0 to 1."""
    place: tuple[int, ...]
    """Index of the largest."""
    got: float
    """There."""
    wanted: float
    """There, as the reference has it."""

    def __repr__(self) -> str:
        where = f" at {list(self.place)}" if self.place else ""
        return (
            f"{float(self):.3g} ulp{where} (got {self.got!r}, expected {self.wanted!r}; {self.share:g} of all within "
            f"{self.quantile:.3g})"
        )


def ulp_error(actual: Any, reference: Any, *, quantile: float = 0.99, dtype: str | None = None) -> UlpError:
    """The largest error of ``actual``, a NumPy array, and the one at ``quantile``.

    ``dtype`` names the format whose units count, by default that of ``actual``.  NaN on either side is an infinite
    error.  An infinity is right where the reference rounds to it, and infinitely wrong elsewhere; 0.0 is -0.0.
    Raises ``ValueError`` for another format or quantile, ``AssertionError`` where shapes differ.
    """
    __tracebackhide__ = True
    name = actual.dtype.name if dtype is None else dtype
    if name not in FORMATS:
        raise ValueError(f"ulp_error: {name} is none of {', '.join(FORMATS)}: dtype= names the format of the results")
    if not 0 <= quantile <= 1:
        raise ValueError(f"ulp_error: quantile={quantile!r} takes a number from 0 to 1")
    if actual.shape != reference.shape:
        raise AssertionError(f"shapes differ: the result is {actual.shape}, expected {reference.shape}")
    wide = np.dtype(np.longdouble) if reference.dtype == np.longdouble else np.dtype(np.float64)
    got, wanted = actual.astype(wide), reference.astype(wide)
    errors = _errors(got, wanted, FORMATS[name])
    largest = int(errors.argmax()) if errors.size else 0
    found = UlpError(errors.flat[largest] if errors.size else 0.0)
    found.share, found.quantile = quantile, _quantile(errors, quantile)
    found.place = tuple(int(index) for index in np.unravel_index(largest, errors.shape)) if errors.size else ()
    found.got, found.wanted = (float(one[found.place]) if errors.size else 0.0 for one in (got, wanted))
    return found


def _errors(got: Any, wanted: Any, of: _Format) -> Any:
    """In the units of a format, by element."""
    with np.errstate(invalid="ignore", over="ignore"):
        _, exponent = np.frexp(wanted)  # of the fraction in [0.5, 1)
        exponent = np.where(wanted == 0, of.least, np.clip(exponent - 1, of.least, of.most))
        steps = np.ldexp(abs(got - wanted), of.precision - 1 - exponent)
        past_largest = abs(wanted) >= _rounds_to_infinity(of, wanted.dtype)
    right = (got == wanted) | (np.isinf(got) & past_largest & (np.signbit(got) == np.signbit(wanted)))
    wrong = np.isnan(got) | np.isnan(wanted) | np.isinf(got) | np.isinf(wanted)
    return np.where(right, 0.0, np.where(wrong, np.inf, steps)).astype(np.float64)


def _rounds_to_infinity(of: _Format, wide: np.dtype[Any]) -> Any:
    """The least number that rounds to infinity: half a unit above the largest; infinite where ``wide`` has it not."""
    half = np.ldexp(wide.type(0.5), of.most + 1 - of.precision)
    largest = np.ldexp(wide.type(2) - np.ldexp(wide.type(1), 1 - of.precision), of.most)
    return largest + half


def _quantile(errors: Any, share: float) -> float:
    """The least error that at least this share of the elements does not exceed."""
    if not errors.size:
        return 0.0
    place = max(int(np.ceil(share * errors.size)) - 1, 0)
    return float(np.partition(errors.reshape(-1), place)[place])
