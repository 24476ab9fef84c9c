"""Kernels of cuTile, launched by its calling convention: arrays taken apart, constraints kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, NotingDevice
from dsl_samples import RecordedSignature, install_recorded_cutile

from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import binary_for
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.other_compilers import CutileKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def cutile_kernel(name: str, device: PlaceholderDevice | None = None, changes: Any = None) -> CutileKernel:
    install_recorded_cutile()
    signature = RecordedSignature(f"cutile-{name}-1.7.0")
    for field, value in (changes or {}).items():
        setattr(signature.parameters[0], field, value)
    handed = read_cutile(SimpleNamespace(), signature, ARCHITECTURES)
    binaries = {arch: binary_for(handed, arch) for arch in ARCHITECTURES}
    return CutileKernel(handed, binaries, ARCHITECTURES, "sm_90", device=device or PlaceholderDevice())


def array(*shape: int, dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


def test_arrays_are_address_shape_and_strides_and_constants_are_left_out() -> None:
    device = NotingDevice()
    x, out = array(64, 1000), array(64, 1024, address=0x7F0000100000)
    kernel = cutile_kernel("softmax", device, {"stride_divisible_by": [8, 1]})
    launch = kernel.launch(64, (x, out, 1024))
    launch()
    (grid, block, shared, _), values = device.log[-1][1:]
    assert (grid, block, shared) == ((64, 1, 1), (256, 1, 1), 0)
    assert [int(value) for value in values] == [x.data.ptr, 64, 1000, 1000, 1, out.data.ptr, 64, 1024, 1024, 1]
    assert [value.dtype.name for value in values[1:5]] == ["int32"] * 4


def test_a_view_with_gaps_goes_by_its_address_and_its_strides() -> None:
    device = NotingDevice()
    whole = np.zeros((64, 2048), "float32")
    view = DeviceArray(whole[:, :1024], 0x7F0000000200)
    launch = cutile_kernel("softmax", device).launch(64, (view, array(64, 1024), 1024))
    launch()
    values = device.log[-1][2]
    assert [int(value) for value in values[:5]] == [0x7F0000000200, 64, 1024, 2048, 1]
    assert launch.identity().arguments[:5] == ("address align=256", "int32=64", "int32=1024", "int32=2048", "int32=1")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((array(64, 1024),), r"softmax takes 3 arguments \(1, 2, 3\), and 1 were given"),
        ((array(64, 1024), array(64, 1024), 512), "argument 3 is 512, and 1024 was compiled in: compile it with"),
        ((array(64, 1024), array(64, 1024), array(4)), "argument 3 is an array, and 1024 was compiled in"),
        ((3, array(64, 1024), 1024), "softmax takes 10 arguments .* and 6 were given"),
        ((array(1024), array(64, 1024), 1024), "softmax takes 10 arguments .* and 8 were given"),
        ((array(64, 1024, dtype="float64"), array(64, 1024), 1024), r"an array of float64, .* declares float\*"),
        (array(64, 1024), "args takes a tuple of arguments"),
    ],
)
def test_arguments_that_the_kernel_was_not_compiled_for_are_refused(args: Any, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        cutile_kernel("softmax").launch(64, args)
