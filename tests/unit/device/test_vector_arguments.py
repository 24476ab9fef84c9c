"""CUDA's vectors by value, out of tuples and dicts; structures, whose layout no machine code tells."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from device_samples import make_binary

from pytest_gpuperf.device.arguments import Argument, prepare
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.model.evidence import Parameter


def fitted(type_name: str | None, size: int, value: Any) -> Argument:
    binary = msgspec.structs.replace(make_binary(), parameters=(Parameter(offset=0, size=size, type=type_name),))
    (argument,) = prepare(binary, (value,), lambda _: True)
    return argument


@pytest.mark.parametrize(
    ("type_name", "size", "value", "content"),
    [
        ("float4", 16, (1.0, 2.0, 3.0, 4), np.array([1, 2, 3, 4], "float32")),
        ("float2", 8, {"y": 2.0, "x": 1.0}, np.array([1, 2], "float32")),
        ("int3", 12, (1, -2, 3), np.array([1, -2, 3], "int32")),
        ("uchar4", 4, {"x": 255, "y": 0, "z": 1, "w": 2}, np.array([255, 0, 1, 2], "uint8")),
        ("double2", 16, (0.5, 0.25), np.array([0.5, 0.25])),
    ],
)
def test_a_vector_has_the_bytes_of_its_numbers(type_name: str, size: int, value: Any, content: Any) -> None:
    argument = fitted(type_name, size, value)
    assert argument.value.tobytes() == content.tobytes()
    assert argument.value.nbytes == size
    assert argument.entry.endswith(f"=0x{content.tobytes().hex()}")


@pytest.mark.parametrize(
    ("type_name", "size", "value", "told"),
    [
        ("float4", 16, (1.0, 2.0), "takes 4 numbers: x, y, z, w"),
        ("float2", 8, (1.0, 2.0, 3.0), "takes 2 numbers: x, y"),
        ("float2", 8, {"x": 1.0, "z": 2.0}, "takes 2 numbers: x, y"),
        ("float2", 8, ("a", 2.0), "could not convert"),
        ("uchar4", 4, (256, 0, 0, 0), "uint8|out of bounds"),
        ("Pair", 8, (1.0, 2.0), r"layout the machine code does not tell: pass a structured NumPy scalar, np\.array"),
        (None, 8, {"first": 1}, "is a dict, .*layout the machine code does not tell"),
        ("float2*", 8, (1.0, 2.0), "is a tuple"),
    ],
)
def test_what_fits_no_vector_is_refused(type_name: str | None, size: int, value: Any, told: str) -> None:
    with pytest.raises(LaunchError, match=told):
        fitted(type_name, size, value)


def test_a_structure_is_a_structured_scalar() -> None:
    layout = np.dtype([("first", "i4"), ("weight", "f8")], align=True)
    value = np.array((16, 0.5), dtype=layout)[()]
    argument = fitted("Range", 16, value)
    assert argument.value.tobytes() == value.tobytes()


def test_a_null_pointer_is_none() -> None:
    assert fitted("float const*", 8, None) == Argument(np.uint64(0), "null")
