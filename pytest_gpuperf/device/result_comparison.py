"""Comparisons of results that say how many elements fail, and where and by how much the worst one does.

CuPy and NumPy arrays are compared where they are, in pieces, so that temporaries stay small; errors in units in the
last place are counted on the host.  NaN never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_gpuperf.arguments import number_of

__tracebackhide__ = True  # of pytest: an error is shown at the test's line

PIECE = 1 << 24
"""Elements compared at once."""
FORMATS = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126), "float64": (53, -1022)}
"""Bits of precision, the implicit one included, and exponent of the smallest normal number."""


def assert_equal(actual: Any, expected: Any) -> None:
    """Same shape, same type, every element the same bits (0.0 is not -0.0).  Raises ``AssertionError``."""
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
    if not (0 <= number_of(rtol) < math.inf and 0 <= number_of(atol) < math.inf):
        raise ValueError(f"assert_allclose: rtol={rtol!r} and atol={atol!r} take finite numbers from 0")

    def too_far(got: Any, wanted: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):
            return ~np.isclose(_double(got), _double(wanted), rtol=number_of(rtol), atol=number_of(atol))

    _compare(actual, expected, too_far, f"are beyond rtol={number_of(rtol):g}, atol={number_of(atol):g}")


def _compare(actual: Any, expected: Any, wrong_of: Callable[[Any, Any], Any], how: str) -> None:
    """Raise ``AssertionError`` that names the number of elements which ``wrong_of`` finds, and the worst of them."""
    _check_shapes(actual, expected)
    all_got, all_wanted = actual.reshape(-1), expected.reshape(-1)
    count, largest, worst = 0, -1.0, 0
    for start in range(0, actual.size, PIECE):
        got, wanted = all_got[start : start + PIECE], all_wanted[start : start + PIECE]
        wrong = wrong_of(got, wanted)
        if failing := int(wrong.sum()):
            count += failing
            distance, place = _farthest(got, wanted, wrong)
            if distance > largest:
                largest, worst = distance, start + place
    if count:
        place_of_worst = f" at {list(map(int, np.unravel_index(worst, actual.shape)))}" if actual.ndim else ""
        off = f" (off by {largest:.3g})" if 0 < largest < math.inf else ""
        raise AssertionError(
            f"{count} of {actual.size} elements {how} ({count / actual.size:.2%}); the worst{place_of_worst}: "
            f"got {all_got[worst].item()!r}, expected {all_wanted[worst].item()!r}{off}"
        )


def _check_shapes(actual: Any, expected: Any) -> None:
    if tuple(actual.shape) != tuple(expected.shape):
        raise AssertionError(f"shapes differ: the result is {tuple(actual.shape)}, expected {tuple(expected.shape)}")


def _differs(got: Any, wanted: Any) -> Any:
    """Not equal, or zeros of different signs.  NaN differs from everything."""
    if got.dtype.kind == "c":
        return _differs(got.real, wanted.real) | _differs(got.imag, wanted.imag)
    if got.dtype.isbuiltin == 2:  # of ml_dtypes, as bfloat16
        return _differs(_double(got), _double(wanted))
    if got.dtype.kind != "f":
        return got != wanted
    return (got != wanted) | (np.signbit(got) != np.signbit(wanted))  # CuPy arrays take them to the GPU by themselves


def _farthest(got: Any, wanted: Any, wrong: Any) -> tuple[float, int]:
    """The largest difference among those that are wrong, NaN as an infinite one, and its place."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = abs(_double(got) - _double(wanted))
    distance[distance != distance] = math.inf
    distance[~wrong] = -1.0
    place = int(distance.argmax())
    return float(distance[place]), place


def _double(array: Any) -> Any:
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def ulp_error(actual: Any, reference: Any, *, dtype: str | None = None) -> float:
    """The largest error of ``actual``, a NumPy array: see ``Gpu.ulp_error``; 0.0 is -0.0."""
    name = actual.dtype.name if dtype is None else dtype
    if name not in FORMATS:
        raise ValueError(f"ulp_error: {name} is none of {', '.join(FORMATS)}: dtype= names the format of the results")
    _check_shapes(actual, reference)
    wide = np.longdouble if reference.dtype == np.longdouble else np.float64
    got, wanted = actual.astype(wide), reference.astype(wide)
    precision, least_exponent = FORMATS[name]
    with np.errstate(invalid="ignore", over="ignore"):
        exponent = np.where(wanted == 0, least_exponent, np.maximum(np.frexp(wanted)[1] - 1, least_exponent))
        steps = np.ldexp(abs(got - wanted), precision - 1 - exponent)
    steps = np.where(np.isfinite(got) & np.isfinite(wanted), steps, np.inf)
    return float(np.where(got == wanted, 0.0, steps).max(initial=0.0))
