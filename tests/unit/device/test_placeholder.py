"""Without a GPU: metadata as NumPy would have it, and ``DeviceNeeded`` for everything else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_samples import make_binary
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.placeholder import PlaceholderArray, PlaceholderDevice, without_data

SHAPES = npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


@pytest.fixture
def device() -> PlaceholderDevice:
    return PlaceholderDevice()


@pytest.fixture
def array(device: PlaceholderDevice) -> PlaceholderArray:
    return device.arrays.random((4, 3, 2), seed=1)


def alike(placeholder: PlaceholderArray, array: np.ndarray[Any, Any]) -> bool:
    names = ("shape", "dtype", "ndim", "size", "nbytes", *(["strides"] if array.size else []))
    return all(getattr(placeholder, name) == getattr(array, name) for name in names)


@given(st.data())
def test_metadata_and_views_are_those_of_numpy(data: st.DataObject) -> None:
    shape, dtype = data.draw(SHAPES), data.draw(st.sampled_from(["float32", "int8", "complex128", "bool"]))
    placeholder, array = without_data(shape, dtype), np.empty(shape, dtype)
    assert alike(placeholder, array)
    index = data.draw(npst.basic_indices(shape, allow_newaxis=True))
    assert alike(placeholder[index], _view(array, index))
    assert alike(placeholder.T, array.T)
    axes = data.draw(st.permutations(range(len(shape))))
    assert alike(placeholder.transpose(*axes), array.transpose(*axes))
    assert alike(placeholder.swapaxes(0, -1), array.swapaxes(0, -1))
    assert alike(placeholder.astype("c16", copy=False).view(dtype="f8"), array.astype("c16").view("f8"))


def _view(array: np.ndarray[Any, Any], index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    return array[parts if Ellipsis in parts else (*parts, Ellipsis)]


USES: list[Callable[[Any], Any]] = [
    np.asarray, np.sum, np.sin, lambda a: np.array_equal(a, a), float, int, bool, list, iter, abs,
    lambda a: a + 1, lambda a: 1 + a, lambda a: np.ones(2) * a, lambda a: a @ a, lambda a: a == a, lambda a: a < 1,
    operator.neg, lambda a: operator.iadd(a, 1), lambda a: operator.setitem(a, 0, 1), lambda a: 1 in a,
    lambda a: a.sum(), lambda a: a.get(), lambda a: a.data.ptr, lambda a: a.set(1), lambda a: a.mean(axis=0),
    lambda a: a[np.array([True])], lambda a: a[[0, 1]], lambda a: a[a], lambda a: a[True],
    lambda a: np.testing.assert_array_equal(a, np.zeros(3)), lambda a: np.from_dlpack(a),
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_data_need_a_gpu(array: PlaceholderArray, use: Callable[[Any], Any]) -> None:
    with pytest.raises(DeviceNeeded, match=r"^needs a GPU: "):
        use(array)


def test_every_way_to_make_an_array(device: PlaceholderDevice, array: PlaceholderArray) -> None:
    arrays = device.arrays
    empty = arrays.empty(5)
    made = [arrays.zeros(5), arrays.full(5, 1.5), empty, arrays.empty_like(empty), arrays.array([1] * 5)]
    assert [one.shape for one in made] == [(5,)] * 5
    assert made[-1].dtype == np.int64
    assert arrays.array(array).shape == array.shape
    assert arrays.empty((1 << 20, 1 << 20)).reshape(-1).shape == (1 << 40,), "beyond any memory, and costs nothing"


def test_the_device_gives_facts_and_refuses_the_rest(device: PlaceholderDevice) -> None:
    assert device.facts.slug == "none"
    assert device.state().sm_clock_mhz is None
    for use, words in (
        (lambda: device.load(make_binary()), "work is launched"),
        (device.timer, "timed"),
        (device.synchronize, "waits"),
        (device.lock, "for itself"),
        (lambda: device.profiler_range("gpuperf:0"), "profiled"),
        (lambda: device.peak("copy_bandwidth"), "a peak is measured"),
        (lambda: device.to_host(None), "data"),
    ):
        with pytest.raises(DeviceNeeded, match=rf"^needs a GPU: .*{words}"):
            use()
