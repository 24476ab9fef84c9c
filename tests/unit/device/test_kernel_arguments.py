"""Arguments: what fits a parameter and how, what is refused and in which words."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from device_samples import device_array, make_binary
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.device.arguments import prepare, recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.device.placeholder import PlaceholderDevice, without_data
from pytest_gpuperf.model.evidence import Parameter

ADDRESS_OR_NUMBER = "64-bit integer or pointer"


def fit(parameter: str | int, value: Any, *, on_host: bool = True) -> Any:
    (argument,) = prepare(make_binary(parameter), (value,), lambda array: on_host)
    return argument


def refusal(parameter: str | int, value: Any, *, on_host: bool = True) -> str:
    with pytest.raises(LaunchError) as caught:
        fit(parameter, value, on_host=on_host)
    assert str(caught.value).startswith("work: argument 1 is ")
    return str(caught.value)


def floats(*shape: int, dtype: str = "float32") -> Any:
    return without_data(shape, dtype)


# --- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameter", "dtype"), [
    ("float const*", "float32"), ("double*", "float64"), ("int*", "int32"), ("int*", "uint32"),
    ("unsigned char*", "int8"), ("bool*", "uint8"), ("void*", "complex64"), ("__half*", "float16"),
    ("__half const*", "uint16"), ("pointer", "float64"), (ADDRESS_OR_NUMBER, "float64"),
    ("__nv_bfloat16 const*", "float16"), ("__nv_bfloat162*", "uint16"),
    ("float4*", "float32"), ("float2*", "complex64"), ("uint4*", "uint32"),
    ("longlong2*", "int64"), ("double4_16a*", "float64"), ("thrust::complex<float>*", "complex64"),
    ("cuda::std::__4::complex<double>*", "complex128"), ("Pixel*", "int16"), ("float const (*) [32]", "float32"),
    ("float**", "uint64"), ("float const* __restrict__", "float32"), (8, "float64"),
])  # fmt: skip
def test_an_array_of_the_pointed_to_type_fits(parameter: str | int, dtype: str) -> None:
    array = floats(1024, 32, dtype=dtype)
    argument = fit(parameter, array)
    assert argument.value is array
    assert argument.entry == f"{np.dtype(dtype)}[1024,32]"


def test_a_strided_view_is_refused_and_a_transposed_array_is_noted() -> None:
    matrices = floats(16, 32, 32)
    text = refusal("float*", matrices.swapaxes(1, 2))
    assert "strided view of shape (16, 32, 32)" in text
    assert "contiguous copy" in text
    refusal("float*", floats(8)[::2])
    assert fit("float*", floats(8, 4).T).entry == "float32[4,8] order=F"
    assert fit("float*", matrices[3:5]).entry == "float32[2,32,32]"
    assert fit("float*", matrices[:, :0]).entry == "float32[16,0,32]"
    assert fit("float*", floats(1, 8)[:, None]).entry == "float32[1,1,8]"


def test_a_host_array_is_refused_unless_the_device_makes_such() -> None:
    host = np.zeros(4, np.float32)
    assert "host memory" in refusal("float*", host)
    assert "gpu.array" in refusal(8, host)
    assert fit("float*", host, on_host=False) == (host, host, "float32[4]")


@pytest.mark.parametrize(("address", "alignment"), [(0x7F00, 256), (0x7F80, 128), (0x7F04, 4), (0x7F01, 1), (0, 256)])
def test_the_alignment_of_an_address_is_noted_up_to_256(address: int, alignment: int) -> None:
    argument = fit("float*", device_array(4, address=address))
    assert argument.entry == f"float32[4] align={alignment}"
    assert argument.value == np.uint64(address)


# --- addresses -----------------------------------------------------------------------------------


def test_addresses_are_taken_where_a_pointer_fits_and_do_not_enter_the_identity() -> None:
    memory = types.SimpleNamespace(ptr=0x7F10)
    for parameter in ("float*", 8, "unsigned long long", "pointer", ADDRESS_OR_NUMBER):
        assert fit(parameter, memory)[1:] == (np.uint64(0x7F10), "address align=16")
    assert fit("float*", None)[1:] == (np.uint64(0), "null")
    assert fit("float*", np.uint64(0x7F10)).entry == "address align=16"
    assert "is SimpleNamespace" in refusal("float", memory)
    assert "is NoneType" in refusal("int", None)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameter", "value", "type_"), [
    ("int", 2**31 - 1, np.int32), ("unsigned int", 7, np.uint32), ("float", 7, np.float32),
    ("float", 0.1, np.float32), ("double", 2, np.float64), ("bool", True, np.bool_), ("long", -1, np.int64),
    ("short", -1, np.int16), ("__half", 0.5, np.float16), ("float", float("inf"), np.float32), (4, -7, np.int32),
    (4, 2**32 - 1, np.uint32), (8, 2**63, np.uint64), (1, 255, np.uint8), (1, True, np.bool_), (2, -1, np.int16),
    (4, 0.5, np.float32), (8, 0.5, np.float64), (4, True, np.int32), ("32-bit integer", 2**32 - 1, np.uint32),
    ("8-bit integer", True, np.bool_), (ADDRESS_OR_NUMBER, 7, np.int64), (ADDRESS_OR_NUMBER, 2**63, np.uint64),
])  # fmt: skip
def test_a_python_number_takes_the_type_of_its_parameter(parameter: str | int, value: Any, type_: type) -> None:
    argument = fit(parameter, value)
    assert type(argument.value) is type_
    assert argument.value == type_(value)
    assert argument.entry == f"{np.dtype(type_)}={argument.value.item()}"


@pytest.mark.parametrize(("parameter", "value", "words"), [
    ("int", 2**31, "the number 2147483648"), ("unsigned int", -1, "the number -1"), (4, 2**32, "the number"),
    ("float", 1e39, "the number"), ("__half", 1e6, "the number"), ("int", 1.0, "the number 1.0"),
    (2, 0.5, "or a NumPy scalar of that type"), (12, 1, "a NumPy scalar"), ("32-bit integer", 2**40, "the number"),
    (ADDRESS_OR_NUMBER, 1.5, "the number 1.5"), ("pointer", 5, "pass an array, None or array.data"),
    ("float*", 5, "pass an array, None or array.data"), ("int", "x", "is str"), ("int", 1j, "is complex"),
    ("float2", (1.0, 2.0), "is tuple"),
])  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(parameter: str | int, value: Any, words: str) -> None:
    assert words in refusal(parameter, value)


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from([1, 2, 4, 8]))
def test_an_integer_of_unknown_type_keeps_its_value_or_is_refused(value: int, size: int) -> None:
    try:
        argument = fit(size, value)
    except LaunchError:
        assert not -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size)
    else:
        assert argument.value.itemsize == size
        assert int(argument.value) == value


# --- NumPy scalars -------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameter", "value", "fits"), [
    ("32-bit integer", np.uint32(3), True), ("8-bit integer", np.bool_(True), True), ("int", np.uint32(3), True),
    (ADDRESS_OR_NUMBER, np.int64(3), True), ("float", np.float32(3), True), (4, np.float32(3), True),
    ("Pixel", np.int64(3), True), ("float2", np.complex64(3), True), ("int", np.int64(3), False),
    ("float", np.int32(3), False), ("int", np.float32(3), False), (8, np.float32(3), False),
    ("float*", np.float64(3), False), ("32-bit integer", np.float32(3), False), ("pointer", np.float64(3), False),
])  # fmt: skip
def test_numpy_scalar_that_fits_passes_as_it_is(parameter: str | int, value: Any, fits: bool) -> None:
    if fits:
        assert fit(parameter, value).value is value
    else:
        assert f"is {value.dtype}" in refusal(parameter, value)


def test_a_structure_is_passed_by_value_and_known_by_its_bytes() -> None:
    pixel = np.array([(1, 2)], dtype=[("x", "u2"), ("y", "u2")])
    for value in (pixel, pixel[0]):
        argument = fit(4, value)
        assert isinstance(argument.value, np.ndarray)
        assert argument.value.size == 1
        assert argument.entry == "void32=0x01000200"
    assert "12 bytes" in refusal(12, pixel)


def test_opaque_bytes_are_passed_as_they_are_and_known_by_their_size() -> None:
    content = bytes(range(128))
    for value in (content, np.frombuffer(content, "uint8"), np.frombuffer(content, "uint64")):
        argument = fit(128, value)
        assert argument.value.tobytes() == content
        assert argument.entry == "opaque[128]"
    assert fit("unsigned long", bytes(8)).entry == fit("float2", np.array([1, 2], "float32")).entry == "opaque[8]"
    vector = msgspec.structs.replace(make_binary(), parameters=(Parameter(offset=0, size=16, type="float4"),))
    factors = np.array([1, 2, 3, 4], "float32")
    assert prepare(vector, (factors,), lambda _: True)[0].value.nbytes == 16
    assert "is 64 bytes, but" in refusal(128, bytes(64))


# --- arguments of a launch on record ---------------------------------------------------------------


A, B = 0x7F0000000200, 0x7F0000080000


def launch_on(parameters: Sequence[str | int], *args: Any) -> Launch:
    kernel = Kernel({"sm_90": make_binary(*parameters)}, device=PlaceholderDevice(), native=None)
    return kernel.launch(1, 32, args)


NOW = launch_on(["float*", "float*", "int", "float"], device_array(64, address=A), device_array(64, address=B), 63, 2.0)
"""What the candidate has; on record are two arrays and one number."""
FLOATS = "float32[64] align=512"


def formed(*entries: str, parameters: Sequence[str | int] = (8, 8, 4), launch: Launch = NOW) -> tuple[Any, ...]:
    return launch.values_for(make_binary(*parameters), recorded_arguments(entries, launch.identity().arguments))


@pytest.mark.parametrize(("entry", "value"), [
    ("bool=True", np.bool_(True)), ("int8=-3", np.int8(-3)), ("uint64=18446744073709551615", np.uint64(2**64 - 1)),
    ("float16=1.5", np.float16(1.5)), ("float32=inf", np.float32(np.inf)), ("float64=1e-300", np.float64(1e-300)),
    ("complex64=(1+2j)", np.complex64(1 + 2j)), ("null", np.uint64(0)),
])  # fmt: skip
def test_a_number_is_formed_in_its_own_type(entry: str, value: np.generic) -> None:
    found = formed(FLOATS, FLOATS, entry, parameters=(8, 8, value.itemsize))[2]
    assert (found, found.dtype) == (value, value.dtype)


def test_arrays_of_several_kinds_are_matched_each_in_their_order() -> None:
    of_int = [device_array(64, dtype="int32", address=one) for one in (A, B + 512)]
    launch = launch_on(["int*", "float*", "int*"], of_int[0], device_array(64, address=B), of_int[1])
    found = formed("float32[64]", "int32[64]", "int32[64]", parameters=(8, 8, 8), launch=launch)
    assert found == (B, A, B + 512)


@pytest.mark.parametrize(("entries", "words"), [
    ((FLOATS, FLOATS), r"takes 3 arguments \(.*\), and 2 were given"),
    ((FLOATS, "float32[65]", "int32=64"), r"the record names 1 arrays float32\[64\], and this launch has 2"),
    ((FLOATS, "float64[64]", "int32=64"), r"names 1 arrays float32\[64\], and this launch has 2"),
    ((FLOATS, "float32[8,8] order=F", "int32=64"), "and this launch has"),
    ((FLOATS, FLOATS, "void96=0x00"), "argument 3 was 'void96=0x00', which cannot be made again from the record"),
    ((FLOATS, FLOATS, "address align=16"), "argument 3 was 'address align=16'"),
    ((FLOATS, FLOATS, "int32=2147483648"), "argument 3 was 'int32=2147483648', which cannot be made"),
    ((FLOATS, FLOATS, "int32=" + "9" * 5000), "argument 3 was 'int32=9"),
    ((FLOATS, FLOATS, "int64=64"), "int64, but the kernel declares a parameter of 4 bytes"),
    ((FLOATS, FLOATS, FLOATS), "names 3 arrays"),
])  # fmt: skip
def test_what_cannot_be_formed_again_is_named(entries: tuple[str, ...], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        formed(*entries)
