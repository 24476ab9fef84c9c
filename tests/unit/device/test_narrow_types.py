"""Arrays, tensors and numbers of bfloat16, fp8 and fp4: how they are stored, launched, recorded and compared."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import HostArrays, NotingDevice, device_array, make_binary

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.device import number_types, result_comparison
from pytest_gpuperf.device.arguments import array_facts, prepare, recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.number_types import from_bytes, number_type, to_bytes
from pytest_gpuperf.device.placeholder import PlaceholderDevice


class Tensor(SimpleNamespace):
    """A tensor of PyTorch on a GPU, whose interface for other libraries lacks its type."""

    is_cuda = True

    def __init__(self, dtype: str, size: int, *shape: int, steps: tuple[int, ...] = ()) -> None:
        super().__init__(dtype=f"torch.{dtype}", shape=shape, element_size=lambda: size, data_ptr=lambda: 0x7F << 40)
        self.stride = lambda: steps or tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))

    @property
    def __cuda_array_interface__(self) -> Any:
        raise KeyError(self.dtype)


TENSORS = [("bfloat16", 2), ("float8_e4m3fn", 1), ("float8_e5m2", 1), ("float4_e2m1fn_x2", 1), ("float32", 4)]


@pytest.mark.parametrize(("dtype", "size"), TENSORS)
def test_tensor_is_launched_and_paired_by_the_name_of_its_type(dtype: str, size: int) -> None:
    tensor = Tensor(dtype, size, 64, 32)
    (argument,) = prepare(make_binary(8), (tensor,), lambda _: False)
    assert (int(argument.value), argument.entry) == (0x7F0000000000, f"{dtype}[64,32] align=256")
    assert recorded_arguments([argument.entry], [argument.entry]) == (0,)
    with pytest.raises(LaunchError, match="strided view"):
        prepare(make_binary(8), (Tensor(dtype, size, 64, 32, steps=(64, 1)),), lambda _: False)
    tensor.is_cuda = False
    assert array_facts(tensor) is None


def test_narrow_array_does_not_pass_for_a_wider_type() -> None:
    tensor = Tensor("bfloat16", 2, 64)
    prepare(make_binary("unsigned short*"), (tensor,), lambda _: False)
    reinterpreted = r'declares int4 const\* \(8 bytes\): pass array.view\("int32"\) if its bytes are meant'
    with pytest.raises(LaunchError, match=f"an array of bfloat16, but the kernel {reinterpreted}"):
        prepare(make_binary("int4 const*"), (tensor,), lambda _: False)
    with pytest.raises(LaunchError, match=r"an array of float32, but the kernel declares __nv_bfloat16\*"):
        prepare(make_binary("__nv_bfloat16*"), (Tensor("float32", 4, 64),), lambda _: False)
    with pytest.raises(LaunchError, match=r"the number 2\.5"):
        prepare(make_binary("__nv_bfloat16"), (2.5,), lambda _: False)


@pytest.mark.parametrize("dtype", ["bfloat16", *number_types.IN_BYTES])
def test_missing_ml_dtypes_is_named(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(BadArgument, match=f"NumPy has no {dtype}: pip install ml_dtypes"):
        PlaceholderDevice().arrays.empty(8, f"torch.{dtype}")


@pytest.mark.parametrize(
    ("dtype", "stored_as"),
    [("bfloat16", "bfloat16[4,6]"), ("float8_e4m3fn", "uint8[4,6]"), ("float8_e5m2", "uint8[4,6]"),
     ("float4_e2m1fn", "uint8[4,3]")],
)  # fmt: skip
def test_arrays_of_narrow_types_are_stored_as_on_a_gpu(dtype: str, stored_as: str) -> None:
    pytest.importorskip("ml_dtypes")
    arrays = PlaceholderDevice().arrays
    values = np.array([[0, 0.5, 1, -1.5, 3, -6]] * 4).astype(number_type(dtype))
    for made in (arrays.random((4, 6), dtype, seed=1), arrays.full((4, 6), 1, dtype), arrays.array(values)):
        assert prepare(make_binary(8), (made,), lambda _: False)[0].entry == stored_as
    read = from_bytes(to_bytes(values), dtype)
    assert (read.dtype, read.tolist()) == (values.dtype, values.tolist())
    on_host: Any = NotingDevice()
    on_host.arrays, on_host.to_host = HostArrays(), np.asarray
    assert Gpu(on_host).to_host(to_bytes(values), dtype).tolist() == values.tolist()
    if stored_as == "uint8[4,3]":
        with pytest.raises(BadArgument, match=r"make the last axis of shape \(5,\) even"):
            arrays.zeros(5, dtype)


def test_numbers_of_narrow_types_are_given_as_their_bits_and_recorded() -> None:
    """And arrays of another library have the name of their type."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (argument,) = prepare(make_binary(2), (ml_dtypes.bfloat16(2.5),), lambda _: False)
    assert (argument.value.dtype, int(argument.value), argument.entry) == (np.dtype("uint16"), 0x4020, "bfloat16=2.5")
    (again,) = recorded_arguments([argument.entry], [])
    assert again == ml_dtypes.bfloat16(2.5)
    facts = array_facts(device_array(8, dtype=ml_dtypes.bfloat16))
    assert facts is not None
    assert facts.entry.startswith("bfloat16[8]")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_results_are_compared_by_value_and_sign(dtype: str) -> None:
    pytest.importorskip("ml_dtypes")
    one, other = (np.array(values).astype(number_type(dtype)) for values in ([0.0, 1.5], [-0.0, 1.5]))
    result_comparison.assert_equal(one, one.copy())
    result_comparison.assert_allclose(one, other, rtol=0, atol=0)
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        result_comparison.assert_equal(one, other)


def test_type_of_pytorch_goes_by_its_name_and_an_unknown_one_is_refused() -> None:
    assert PlaceholderDevice().arrays.empty_like(Tensor("float16", 2, 8)).dtype == np.float16
    with pytest.raises(BadArgument, match="no number type bf16: use NumPy's names, or bfloat16, float8_e4m3fn"):
        number_type("bf16")
