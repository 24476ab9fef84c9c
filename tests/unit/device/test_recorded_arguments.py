"""Arguments of a launch on record, formed again from text that may come from anybody."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, make_binary
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.device.arguments import recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.device.placeholder import PlaceholderDevice

A, B = 0x7F0000000200, 0x7F0000080000


def array(address: int, shape: int | tuple[int, ...] = 64, dtype: str = "float32") -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


def launch_on(parameters: Sequence[str | int], *args: Any) -> Launch:
    kernel = Kernel({"sm_90": make_binary(*parameters)}, device=PlaceholderDevice(), native=None)
    return kernel.launch(1, 32, args)


NOW = launch_on(["float*", "float*", "int", "float"], array(A), array(B), 63, 2.0)
"""What the candidate has; on record are two arrays and one number."""
FLOATS = "float32[64] align=512"


def formed(*entries: str, parameters: Sequence[str | int] = (8, 8, 4), launch: Launch = NOW) -> tuple[Any, ...]:
    return launch.values_for(make_binary(*parameters), recorded_arguments(entries, launch.identity().arguments))


def test_arrays_are_the_candidate_s_and_numbers_those_on_record() -> None:
    assert formed(FLOATS, "float32[64]", "int32=64") == (A, B, 64)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("bool=True", np.bool_(True)), ("int8=-3", np.int8(-3)), ("uint64=18446744073709551615", np.uint64(2**64 - 1)),
        ("float16=1.5", np.float16(1.5)), ("float32=inf", np.float32(np.inf)), ("float64=1e-300", np.float64(1e-300)),
        ("complex64=(1+2j)", np.complex64(1 + 2j)), ("null", np.uint64(0)),
    ],
)  # fmt: skip
def test_a_number_is_formed_in_its_own_type(entry: str, value: np.generic) -> None:
    found = formed(FLOATS, FLOATS, entry, parameters=(8, 8, value.itemsize))[2]
    assert (found, found.dtype) == (value, value.dtype)


def test_arrays_of_several_kinds_are_matched_each_in_their_order() -> None:
    launch = launch_on(["int*", "float*", "int*"], array(A, dtype="int32"), array(B), array(B + 512, dtype="int32"))
    found = formed("float32[64]", "int32[64]", "int32[64]", parameters=(8, 8, 8), launch=launch)
    assert found == (B, A, B + 512)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((FLOATS, FLOATS), r"takes 3 arguments \(.*\), and 2 were given"),
        ((FLOATS, "float32[65]", "int32=64"), r"the record names 1 arrays float32\[64\], and this launch has 2"),
        ((FLOATS, "float64[64]", "int32=64"), r"names 1 arrays float32\[64\], and this launch has 2"),
        ((FLOATS, "float32[8,8] order=F", "int32=64"), "and this launch has"),
        ((FLOATS, FLOATS, "void96=0x00"), "argument 3 was 'void96=0x00', which the record alone does not form again"),
        ((FLOATS, FLOATS, "address align=16"), "argument 3 was 'address align=16'"),
        ((FLOATS, FLOATS, "int32=2147483648"), "argument 3 was 'int32=2147483648', which the record"),
        ((FLOATS, FLOATS, "int32=" + "9" * 5000), "argument 3 was 'int32=9"),
        ((FLOATS, FLOATS, "int64=64"), "int64, but the kernel declares a parameter of 4 bytes"),
        ((FLOATS, FLOATS, FLOATS), "names 3 arrays"),
    ],
)
def test_what_cannot_be_formed_again_is_named(entries: tuple[str, ...], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        formed(*entries)


@given(st.lists(st.text(max_size=40) | st.sampled_from([FLOATS, "int32=1", "null"]), max_size=4))
def test_no_text_of_a_record_raises_anything_else(entries: list[str]) -> None:
    with contextlib.suppress(LaunchError):
        formed(*entries)
