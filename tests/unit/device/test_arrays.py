"""Device arrays on a stand-in for CuPy: the right numbers, in range, from the seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import FakeCupy, split_mix
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device import arrays as arrays_module
from pytest_gpuperf.device.arrays import CupyArrays, stream_of


@pytest.fixture
def arrays() -> CupyArrays:
    return CupyArrays(FakeCupy())


def test_the_stream_of_a_seed_is_split_mix() -> None:
    assert int(split_mix(0, 1)[0]) == 0xE220A8397B1DCDAF  # the published first output of SplitMix64
    assert stream_of(0) == 0xE220A8397B1DCDAF
    assert len({stream_of(seed) for seed in range(-50, 50)}) == 100


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint64", "complex64", "complex128", "bool"]
)
def test_a_seed_gives_the_same_numbers_and_another_one_others(arrays: CupyArrays, dtype: str) -> None:
    first, again, other = (arrays.random((40, 5), dtype, seed=seed) for seed in (1, 1, 2))
    assert first.shape == (40, 5)
    assert first.dtype == np.dtype(dtype)
    assert (first == again).all()
    assert (first != other).any()
    assert len(np.unique(first)) > 1


@given(st.integers(), st.integers(-128, 126), st.integers(1, 255))
def test_integers_are_in_their_range(seed: int, low: int, length: int) -> None:
    high = min(low + length, 128)
    values = CupyArrays(FakeCupy()).random(50, "int8", seed=seed, low=low, high=high)
    assert values.min() >= low
    assert values.max() < high


def test_a_range_moves_floats_and_both_parts_of_complex_numbers(arrays: CupyArrays) -> None:
    for dtype, low, high in (("float16", 0, 1), ("float32", -2, 6), ("float64", 0, 1)):
        values = arrays.random(4000, dtype, seed=3, low=low or None, high=high).astype(np.float64)
        assert low <= values.min() < values.max() < high
        assert abs(values.mean() - (low + high) / 2) < 0.02 * (high - low)
        assert abs(values.std() - 12**-0.5 * (high - low)) < 0.02 * (high - low)
    numbers = arrays.random((10, 50), "complex64", seed=1, low=1, high=2)
    for part in (numbers.real, numbers.imag):
        assert 1 <= part.min() < part.max() < 2
    assert (numbers.real != numbers.imag).any()


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("float32", 1, 1), ("float32", 2, None), ("float64", 0, float("inf")), ("float32", float("nan"), 1),
     ("int8", 0, 129), ("uint8", -1, 5), ("int32", 5, 5)],
)  # fmt: skip
def test_what_is_no_range_is_refused(arrays: CupyArrays, dtype: str, low: Any, high: Any) -> None:
    with pytest.raises(ValueError, match=r"gpu\.random: low=.* no range"):
        arrays.random(4, dtype, seed=1, low=low, high=high)


def test_an_empty_array_is_poisoned(arrays: CupyArrays) -> None:
    assert np.isnan(arrays.empty((3, 4))).all()
    assert (arrays.empty_like(arrays.zeros(5, "int32")) == -1).all()


@pytest.mark.parametrize(
    ("code", "parameters", "types"),
    [
        (arrays_module.UNIFORM, "unsigned long long seed, int bits, double step, double low, double span",
         "float double"),
        (arrays_module.INTEGERS, "unsigned long long seed, unsigned long long low, unsigned long long span",
         "bool char int long"),
    ],
)  # fmt: skip
def test_the_generators_compile(code: str, parameters: str, types: str) -> None:
    for name in types.split():
        source = f"""typedef {name} T;
        extern "C" __global__ void fill(T* all, {parameters})
        {{ long long i = threadIdx.x; T& out = all[i]; {code} }}"""
        assert compile_kernel(KernelSource(text=source, name="fill"), "sm_90").profile.spill_store_bytes == 0
