"""Copies, poison and small errors of arrays; and what is no plain array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.device.plain_arrays import NotPlain, PlainArrays

ARRAYS = PlainArrays(np.ndarray)


class Subclass(np.ndarray):
    pass


def of(dtype: str) -> Any:
    return (np.arange(1, 13).reshape(3, 4) % 2 + 1).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T, lambda a: a[:, ::2], lambda a: a[0, 0:0]])
def test_poison_leaves_nothing_of_an_array_as_it_was(dtype: str, layout: Any) -> None:
    array = layout(of(dtype))
    outside = of(dtype)
    ARRAYS.poison(array)
    if np.dtype(dtype).kind in "fc":
        assert np.isnan(array).all()
    elif dtype == "bool":
        assert array.view("uint8").all()
    else:
        assert (array == np.array(-1).astype(dtype)).all()
    assert (outside == of(dtype)).all()


def test_poison_stays_within_a_view() -> None:
    whole = of("float32")
    ARRAYS.poison(whole[1])
    assert np.isnan(whole).sum() == 4
    assert np.isnan(whole[1]).all()


@pytest.mark.parametrize(("dtype", "wanted"), [("float32", 1.01), ("complex64", 1.01), ("int32", 2), ("bool", False)])
def test_a_shifted_copy_is_off_everywhere_and_of_the_same_type(dtype: str, wanted: Any) -> None:
    array = np.ones(4, dtype)
    found = ARRAYS.shifted(array, 0.01)
    assert found.dtype == array.dtype
    assert found == pytest.approx(np.full(4, wanted))
    assert (array == 1).all()


@pytest.mark.parametrize(
    "layout", [lambda a: a, lambda a: a.T, lambda a: a[:, ::2], lambda a: a[0, 0], lambda a: a[0:0]]
)
def test_arrays_of_any_layout_are_compared_by_their_bytes(layout: Any) -> None:
    array = np.asarray(layout(of("float32")))
    copy = ARRAYS.copy(array)
    assert ARRAYS.equal(array, copy)
    assert not ARRAYS.equal(array, array[None, ...].repeat(2, 0)) or not array.size
    ARRAYS.assign(copy, array + 1)
    assert not ARRAYS.equal(array, copy) or not array.size


def test_structures_are_copied_and_numbers_stay() -> None:
    array = of("float32")
    copied = ARRAYS.map((array, [array, 3], {"a": array, "n": None}), ARRAYS.copy)
    assert isinstance(copied, tuple)
    assert copied[0] is not array
    assert copied[1][1] == 3
    assert copied[2]["n"] is None
    assert ARRAYS.same(copied, (array, (array, 3), {"a": array, "n": None}))
    assert not ARRAYS.same(copied, (array, (array + 1, 3), {"a": array, "n": None}))
    assert not ARRAYS.same(copied, (array,))


@pytest.mark.parametrize("value", [of("float32").view(Subclass), object(), lambda: 1, iter(())])
def test_what_may_compute_when_it_is_looked_at_is_no_plain_array(value: Any) -> None:
    with pytest.raises(NotPlain):
        ARRAYS.map((value,), ARRAYS.copy)


def test_arrays_that_share_memory_overlap() -> None:
    array = of("float32")
    assert ARRAYS.overlap(array, array[1])
    assert not ARRAYS.overlap(array[0], array[1])
    assert not ARRAYS.overlap(array, array.copy())


def test_numbers_of_two_bytes_are_short() -> None:
    assert ARRAYS.has_short_numbers(of("float16"))
    assert not ARRAYS.has_short_numbers(of("float32"))
    assert not ARRAYS.has_short_numbers(of("uint8"))
