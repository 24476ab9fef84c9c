"""``gpu``: facts, arrays and comparisons, with a GPU (of NumPy arrays) and without."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, HostArrays
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pytest_gpuperf.device import result_comparison
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.device.result_comparison import FORMATS, ulp_error


class HostDevice(PlaceholderDevice):
    """A GPU whose arrays are NumPy's."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays: Any = HostArrays()

    def to_host(self, array: Any) -> Any:
        return array._host


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(Gpu, "available", True)
    return Gpu(HostDevice())


def failure(compared: Any, *arguments: Any, **settings: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        compared(*arguments, **settings)
    return str(caught.value)


def test_without_a_gpu_comparisons_peaks_and_data_stop_the_test() -> None:
    absent = Gpu(PlaceholderDevice())
    array = absent.zeros(4)
    for use in (
        lambda: absent.assert_equal(array, array),
        lambda: absent.assert_allclose(np.zeros(4), np.zeros(4)),
        lambda: absent.copy_bandwidth,
        lambda: absent.to_host(array),
    ):
        with pytest.raises(DeviceNeeded):
            use()


def test_equal_arrays_pass(gpu: Gpu) -> None:
    for array in (gpu.random((4, 3, 2), seed=1), gpu.random(5, "complex64", seed=1), gpu.zeros(()), gpu.zeros((0, 4)),
                  gpu.random(9, "bool", seed=1), gpu.full(2, np.inf), gpu.random((4, 3), seed=1).T):  # fmt: skip
        gpu.assert_equal(array, array.copy())
        gpu.assert_allclose(array, array.copy(), rtol=0)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_message_has_count_worst_place_and_values(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(result_comparison, "PIECE", piece)
    expected = gpu.zeros((4, 8))
    actual = expected.copy()
    actual[1, 2], actual[3, 5] = 0.25, -4.0
    worst = "the worst at [3, 5]: got -4.0, expected 0.0 (off by 4)"
    assert failure(gpu.assert_equal, actual, expected) == f"2 of 32 elements differ (6.25%); {worst}"
    assert failure(gpu.assert_allclose, actual, expected, rtol=0, atol=0.5) == (
        f"1 of 32 elements are beyond rtol=0, atol=0.5 (3.12%); {worst}"
    )
    assert failure(gpu.assert_equal, gpu.full((), 2.0), gpu.zeros(())) == (
        "1 of 1 elements differ (100.00%); the worst: got 2.0, expected 0.0 (off by 2)"
    )


def test_nan_never_passes(gpu: Gpu) -> None:
    for kind in ("float32", "float16", "complex64"):
        number, nan = gpu.full(3, 1, kind), gpu.full(3, np.nan, kind)
        for one, other in ((nan, number), (number, nan), (nan, nan)):
            assert "3 of 3 elements differ" in failure(gpu.assert_equal, one, other)
            assert "3 of 3" in failure(gpu.assert_allclose, one, other, rtol=1e9, atol=1e9)


@pytest.mark.parametrize("bound", [float("inf"), float("nan"), -1, "5%", True, np.array([1e-5, 1e-3])])
def test_a_bound_that_is_no_finite_number_from_0_is_refused(gpu, bound):
    one = gpu.zeros(2)
    for bounds in ({"rtol": bound}, {"atol": bound}):
        with pytest.raises(ValueError, match=r"assert_allclose: rtol=.* and atol=.* take finite numbers from 0"):
            gpu.assert_allclose(one, one, **bounds)
    gpu.assert_allclose(one, one, rtol=np.float32(1e-3), atol=np.array(0.5))


def test_bits_shapes_and_types_count_where_equality_is_asked_for(gpu: Gpu) -> None:
    assert "1 of 1" in failure(gpu.assert_equal, gpu.full(1, -0.0), gpu.zeros(1))
    gpu.assert_allclose(gpu.full(1, -0.0), gpu.zeros(1), rtol=0)
    failure(gpu.assert_equal, np.complex64([complex(0, -0.0)]), np.complex64([0]))
    for compared in (gpu.assert_equal, gpu.assert_allclose):
        text = failure(compared, gpu.zeros(4), gpu.zeros((4, 1)))
        assert text == "shapes differ: the result is (4,), expected (4, 1)"
    text = failure(gpu.assert_equal, gpu.zeros(4), gpu.zeros(4, "float64"))
    assert "the result is float32, expected float64" in text


def test_arrays_are_compared_where_they_are(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    device = DeviceArray(np.arange(4.0))
    gpu.assert_equal(device, np.arange(4.0))
    gpu.assert_allclose([0.0, 1.0, 2.0, 3.0], device)
    assert "1 of 4" in failure(gpu.assert_equal, np.array([0, 1, 2, 4.0]), device)
    compared: list[Any] = []
    monkeypatch.setattr(result_comparison, "assert_equal", lambda *arrays: compared.extend(arrays))
    gpu.assert_equal(device, device)
    assert compared == [device, device]


ARRAYS = npst.arrays(np.float32, npst.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32))


@given(ARRAYS, st.data())
def test_comparison_agrees_with_numpy(array: Any, data: st.DataObject) -> None:
    other = data.draw(st.one_of(st.just(array), npst.arrays(np.float32, array.shape, elements=st.floats(width=32))))
    rtol, atol = data.draw(st.floats(0, 2)), data.draw(st.floats(0, 1e3))
    got, wanted = array.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        near = (abs(got - wanted) <= atol + rtol * abs(wanted)) & np.isfinite(got) & np.isfinite(wanted)
        close = bool(((got == wanted) | near).all())  # an infinity passes for itself only
        equal = not np.isnan(array).any() and array.tobytes() == other.tobytes()
    assert passes(result_comparison.assert_allclose, array, other, rtol=rtol, atol=atol) == close
    assert passes(result_comparison.assert_equal, array, other) == equal


def passes(compared: Any, *arguments: Any, **settings: Any) -> bool:
    try:
        compared(*arguments, **settings)
    except AssertionError:
        return False
    return True


# --- errors in units in the last place -------------------------------------------------------------


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


@pytest.mark.parametrize(("got", "wanted", "error"), [
    (NAN, 1.0, INF), (1.0, NAN, INF), (NAN, NAN, INF), (INF, 1.0, INF), (1.0, INF, INF), (INF, INF, 0),
    (INF, -INF, INF), (INF, 3.5e38, INF), (0.0, -0.0, 0), (1e-45, 0.0, 1), (0.0, 1e-46, 0.0714),
    ([1.0, 1 + 2**-20, 1.0], [1.0, 1.0, 1.0], 8), ([], [], 0),
])  # fmt: skip
def test_nan_is_never_right_and_an_infinity_where_the_reference_is_one(got: Any, wanted: Any, error: float) -> None:
    assert one(np.float32(got), np.float64(wanted)) == pytest.approx(error, rel=1e-2)


def test_what_it_does_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="int32 is none of float16, bfloat16, float32, float64"):
        one(np.int32(1), 1.0)
    with pytest.raises(AssertionError, match=r"the result is \(2,\), expected \(3,\)"):
        ulp_error(np.zeros(2, "float32"), np.zeros(3))
