"""Errors in units in the last place, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.device.result_comparison import FORMATS, ulp_error


def exact(got: float, wanted: float, name: str) -> Fraction:
    """By the definition, in rational numbers."""
    precision, least = FORMATS[name]
    exponent = max(math.frexp(wanted)[1] - 1, least) if wanted else least
    return abs(Fraction(got) - Fraction(wanted)) / Fraction(2) ** (exponent - precision + 1)


def one(got: Any, wanted: Any, **more: Any) -> float:
    return ulp_error(np.asarray(got), np.asarray(wanted), **more)


@given(name=st.sampled_from(["float16", "float32", "float64"]), data=st.data())
def test_it_is_the_exact_error_in_units_of_the_references_binade(name: str, data: st.DataObject) -> None:
    most = float(np.finfo(name).max) / 2
    got = data.draw(st.floats(width=8 * np.dtype(name).itemsize, min_value=-most, max_value=most))  # type: ignore[call-overload]
    steps = data.draw(st.integers(-3, 3))
    wanted = got + steps * float(np.spacing(np.dtype(name).type(abs(got)))) / 4 if name != "float64" else got
    assert one(np.dtype(name).type(got), wanted) == float(exact(got, wanted, name))


@given(wanted=st.floats(min_value=-1e30, max_value=1e30))
def test_bfloat16_has_units_of_its_own_for_results_that_were_made_float32(wanted: float) -> None:
    bits = np.float32(wanted).view("uint32")
    cut = (bits & np.uint32(0xFFFF0000)).view("float32")  # bfloat16 is the upper half of a float32
    assert one(cut, np.float32(wanted), dtype="bfloat16") < 1


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("got", "wanted", "error"),
    [
        (NAN, 1.0, INF), (1.0, NAN, INF), (NAN, NAN, INF), (INF, 1.0, INF), (1.0, INF, INF), (INF, INF, 0),
        (INF, -INF, INF), (INF, 3.5e38, INF), (0.0, -0.0, 0), (1e-45, 0.0, 1), (0.0, 1e-46, 0.0714),
        ([1.0, 1 + 2**-20, 1.0], [1.0, 1.0, 1.0], 8), ([], [], 0),
    ],
)  # fmt: skip
def test_nan_is_never_right_and_an_infinity_where_the_reference_is_one(got: Any, wanted: Any, error: float) -> None:
    assert one(np.float32(got), np.float64(wanted)) == pytest.approx(error, rel=1e-2)


def test_what_it_does_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="int32 is none of float16, bfloat16, float32, float64"):
        one(np.int32(1), 1.0)
    with pytest.raises(AssertionError, match=r"the result is \(2,\), expected \(3,\)"):
        ulp_error(np.zeros(2, "float32"), np.zeros(3))
