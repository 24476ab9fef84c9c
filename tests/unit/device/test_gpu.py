"""``gpu``: facts, arrays and comparisons, with a GPU (of NumPy arrays) and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, FakeCupy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pytest_gpuperf.device import result_comparison
from pytest_gpuperf.device.arrays import CupyArrays
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.placeholder import PlaceholderDevice


class HostDevice:
    """A GPU whose arrays are NumPy's."""

    def __init__(self) -> None:
        self.facts = nominal_facts("sm_90")
        self.arrays = CupyArrays(FakeCupy())
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1

    def peak(self, name: str) -> float:
        return {"copy_bandwidth": 4.3e12, "fma_throughput": 6.0e13}[name]

    def to_host(self, array: Any) -> Any:
        return array._host


@pytest.fixture
def gpu() -> Gpu:
    return Gpu(HostDevice())  # type: ignore[arg-type]


@pytest.fixture
def absent() -> Gpu:
    return Gpu(PlaceholderDevice())


def failure(compared: Any, *arguments: Any, **settings: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        compared(*arguments, **settings)
    return str(caught.value)


def test_arrays_and_peaks_come_from_the_device(gpu: Gpu) -> None:
    assert (gpu.random(9, seed=1) == gpu.random(9, seed=1)).all()
    assert gpu.zeros((2, 3)).shape == gpu.full((2, 3), 1).shape == gpu.empty((2, 3)).shape == (2, 3)
    assert gpu.empty_like(gpu.zeros(3, "int8")).dtype == np.int8
    assert gpu.array([1.0, 2.0]).tolist() == [1, 2]
    assert (gpu.copy_bandwidth, gpu.fma_throughput) == (4.3e12, 6.0e13)
    gpu.synchronize()
    assert gpu._device.waited == 1  # type: ignore[attr-defined]


def test_without_a_gpu_comparisons_peaks_and_data_stop_the_test(absent: Gpu) -> None:
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
                  gpu.random(9, "bool", seed=1), gpu.full(2, np.inf)):  # fmt: skip
        gpu.assert_equal(array, array.copy())
        gpu.assert_allclose(array, array.copy(), rtol=0)
    gpu.assert_equal(gpu.random((4, 3), seed=1).T, gpu.random((4, 3), seed=1).T)


def test_the_message_has_the_count_the_worst_place_and_both_values(gpu: Gpu) -> None:
    expected = gpu.zeros((4, 8))
    actual = expected.copy()
    actual[1, 2], actual[3, 5] = 0.25, -4.0
    assert failure(gpu.assert_equal, actual, expected) == (
        "2 of 32 elements differ (6.25%); the worst at [3, 5]: got -4.0, expected 0.0 (off by 4)"
    )
    assert failure(gpu.assert_allclose, actual, expected, rtol=0, atol=0.5) == (
        "1 of 32 elements are beyond rtol=0, atol=0.5 (3.12%); the worst at [3, 5]: got -4.0, expected 0.0 (off by 4)"
    )


def test_nan_never_passes(gpu: Gpu) -> None:
    for kind in ("float32", "float16", "complex64"):
        number, nan = gpu.full(3, 1, kind), gpu.full(3, np.nan, kind)
        for one, other in ((nan, number), (number, nan), (nan, nan)):
            assert "3 of 3 elements differ" in failure(gpu.assert_equal, one, other)
            assert "3 of 3" in failure(gpu.assert_allclose, one, other, rtol=1e9, atol=1e9)


def test_an_infinity_passes_for_itself_only(gpu: Gpu) -> None:
    infinite = gpu.full(1, np.inf)
    gpu.assert_allclose(infinite, infinite)
    for other in (gpu.full(1, -np.inf), gpu.full(1, 3e38), gpu.zeros(1)):
        failure(gpu.assert_allclose, infinite, other, rtol=1.0, atol=1e300)
        failure(gpu.assert_allclose, other, infinite, rtol=1.0, atol=1e300)


@pytest.mark.parametrize("bound", [float("inf"), float("nan"), -1, "5%", True, np.bool_(True), np.array([1e-5, 1e-3])])
def test_a_bound_that_is_no_finite_number_from_0_is_refused(gpu, bound):
    one = gpu.zeros(2)
    for bounds in ({"rtol": bound}, {"atol": bound}):
        with pytest.raises(ValueError, match=r"assert_allclose: rtol=.* and atol=.* take finite numbers from 0"):
            gpu.assert_allclose(one, one, **bounds)
    gpu.assert_allclose(one, one, rtol=np.float32(1e-3), atol=np.array(0.5))


def test_bits_count_where_equality_is_asked_for(gpu: Gpu) -> None:
    assert "1 of 1" in failure(gpu.assert_equal, gpu.full(1, -0.0), gpu.zeros(1))
    gpu.assert_allclose(gpu.full(1, -0.0), gpu.zeros(1), rtol=0)
    failure(gpu.assert_equal, np.complex64([complex(0, -0.0)]), np.complex64([0]))


def test_shapes_and_types_that_differ_are_named(gpu: Gpu) -> None:
    for compared in (gpu.assert_equal, gpu.assert_allclose):
        assert failure(compared, gpu.zeros(4), gpu.zeros((4, 1))) == (
            "shapes differ: the result is (4,), expected (4, 1)"
        )
    text = failure(gpu.assert_equal, gpu.zeros(4), gpu.zeros(4, "float64"))
    assert "the result is float32, expected float64" in text


def test_a_device_array_and_a_host_array_are_compared_on_the_host(gpu: Gpu) -> None:
    device = DeviceArray(np.arange(4.0))
    gpu.assert_equal(device, np.arange(4.0))
    gpu.assert_allclose([0.0, 1.0, 2.0, 3.0], device)
    assert "1 of 4" in failure(gpu.assert_equal, np.array([0, 1, 2, 4.0]), device)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(result_comparison, "PIECE", 10 * rows)
    expected = np.zeros((7, 10), np.float32)
    actual = expected.copy()
    actual[2, 1], actual[6, 9], actual[0, 0] = 1, 3, 2
    text = failure(result_comparison.assert_equal, actual, expected)
    assert "3 of 70" in text
    assert "at [6, 9]" in text


ARRAYS = npst.arrays(np.float32, npst.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32))


@given(ARRAYS, st.data())
def test_comparison_agrees_with_numpy(array: Any, data: st.DataObject) -> None:
    other = data.draw(st.one_of(st.just(array), npst.arrays(np.float32, array.shape, elements=st.floats(width=32))))
    rtol, atol = data.draw(st.floats(0, 2)), data.draw(st.floats(0, 1e3))
    with np.errstate(all="ignore"):
        close = np.isclose(array.astype(np.float64), other.astype(np.float64), rtol=rtol, atol=atol).all()
        equal = not np.isnan(array).any() and array.tobytes() == other.tobytes()
    assert passes(result_comparison.assert_allclose, array, other, rtol=rtol, atol=atol) == close
    assert passes(result_comparison.assert_equal, array, other) == equal


def passes(compared: Any, *arguments: Any, **settings: Any) -> bool:
    try:
        compared(*arguments, **settings)
    except AssertionError:
        return False
    return True


def test_arrays_on_the_device_are_compared_there(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    monkeypatch.setattr(result_comparison, "assert_equal", lambda *arrays: compared.extend(arrays))
    arrays = DeviceArray(np.zeros(4)), DeviceArray(np.zeros(4))
    gpu.assert_equal(*arrays)
    assert compared == [*arrays]
