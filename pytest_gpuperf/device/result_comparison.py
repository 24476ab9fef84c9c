"""Comparisons of results that say how many elements fail, and where and by how much the worst one does.

CuPy and NumPy arrays are compared where they are, in pieces, so that temporaries stay small; errors in units in the
last place are counted on the host.  NaN never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.config.call_arguments import number_of

PIECE = 1 << 24
"""Elements compared at once, unless a single row of the first axis has more."""

Wrong = Callable[[Any, Any], Any]
"""Two arrays of one shape to an array of bool: which elements fail."""


class _Worst(NamedTuple):
    """The failing element whose difference is largest; NaN counts as infinitely far."""

    distance: float
    place: tuple[int, ...]
    got: Any
    wanted: Any


def assert_equal(actual: Any, expected: Any) -> None:
    """Same shape, same type, every element the same bits (0.0 is not -0.0).  Raises ``AssertionError``."""
    __tracebackhide__ = True
    if actual.dtype != expected.dtype:
        raise AssertionError(
            f"types differ: the result is {actual.dtype}, expected {expected.dtype}; "
            "convert one of them, or compare with assert_allclose"
        )
    _compare(actual, expected, _differs, "differ")


def assert_allclose(actual: Any, expected: Any, *, rtol: float, atol: float) -> None:
    """``|actual - expected| <= atol + rtol * |expected|`` everywhere.  Raises ``AssertionError``.

    Taken in double precision, so that the reference may be more precise.  An infinity passes for itself only.
    """
    __tracebackhide__ = True
    if not (0 <= number_of(rtol) < math.inf and 0 <= number_of(atol) < math.inf):
        raise ValueError(f"assert_allclose: rtol={rtol!r} and atol={atol!r} take finite numbers from 0")
    rtol, atol = number_of(rtol), number_of(atol)
    if np.dtype(actual.dtype).kind not in "fcbiu" or np.dtype(expected.dtype).kind not in "fcbiu":
        raise AssertionError(f"cannot compare {actual.dtype} with {expected.dtype}: numbers are expected")

    def too_far(got: Any, wanted: Any) -> Any:
        got, wanted = _double(got), _double(wanted)
        with np.errstate(invalid="ignore", over="ignore"):
            near = abs(got - wanted) <= atol + rtol * abs(wanted)
            finite = abs(got) + abs(wanted) < float("inf")
        return ~((got == wanted) | (near & finite))

    _compare(actual, expected, too_far, f"are beyond rtol={rtol:g}, atol={atol:g}")


def _compare(actual: Any, expected: Any, wrong_of: Wrong, how: str) -> None:
    __tracebackhide__ = True
    if tuple(actual.shape) != tuple(expected.shape):
        raise AssertionError(f"shapes differ: the result is {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    count, worst = 0, None
    for start, got, wanted in _pieces(actual, expected):
        wrong = wrong_of(got, wanted)
        failing = int(wrong.sum())
        if failing:
            count += failing
            found = _worst(got, wanted, wrong, start)
            worst = found if worst is None or found.distance > worst.distance else worst
    if worst is not None:
        share = f"{count} of {actual.size} elements {how} ({count / actual.size:.2%})"
        place = f" at {list(worst.place)}" if worst.place else ""
        off = f" (off by {worst.distance:.3g})" if 0 < worst.distance < float("inf") else ""
        raise AssertionError(f"{share}; the worst{place}: got {worst.got!r}, expected {worst.wanted!r}{off}")


def _pieces(actual: Any, expected: Any) -> Iterator[tuple[int, Any, Any]]:
    """Both arrays in slices of the first axis, each with the position of its first row."""
    if actual.ndim == 0:
        yield 0, actual.reshape(1), expected.reshape(1)
        return
    rows = max(1, PIECE * actual.shape[0] // max(actual.size, 1))
    for start in range(0, actual.shape[0], rows):
        yield start, actual[start : start + rows], expected[start : start + rows]


def _differs(got: Any, wanted: Any) -> Any:
    """Not equal, or zeros of different signs.  NaN differs from everything."""
    if got.dtype.kind == "c":
        return _differs(got.real, wanted.real) | _differs(got.imag, wanted.imag)
    if got.dtype.kind != "f":
        return got != wanted
    sign = np.signbit  # a CuPy array takes it to the GPU by itself
    return (got != wanted) | (sign(got) != sign(wanted))


def _worst(got: Any, wanted: Any, wrong: Any, start: int) -> _Worst:
    with np.errstate(invalid="ignore", over="ignore"):
        distance = abs(_double(got) - _double(wanted))
    distance[distance != distance] = float("inf")
    distance[~wrong] = -1.0
    flat = int(distance.argmax())
    index = tuple(int(position) for position in np.unravel_index(flat, wrong.shape))
    values = got[index].item(), wanted[index].item()
    return _Worst(float(distance[index]), (index[0] + start, *index[1:]), *values)


def _double(array: Any) -> Any:
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


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
    found = UlpError(errors.max(initial=0.0))
    found.share, found.quantile, found.place, found.got, found.wanted = quantile, 0.0, (), 0.0, 0.0
    if errors.size:
        found.quantile = float(np.quantile(errors, quantile, method="inverted_cdf"))
        found.place = tuple(int(index) for index in np.unravel_index(int(errors.argmax()), errors.shape))
        found.got, found.wanted = float(got[found.place]), float(wanted[found.place])
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
