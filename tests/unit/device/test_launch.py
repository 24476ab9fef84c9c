"""``Kernel`` and ``Launch``: formed and validated anywhere, run by what the device loaded."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from device_samples import FakeCupy, NotingDevice, make_binary

from pytest_gpuperf.device.arrays import CupyArrays
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError, LoadError
from pytest_gpuperf.device.driver_calls import launch_extended
from pytest_gpuperf.device.interface import PLAIN, Configuration, LaunchAttributes
from pytest_gpuperf.device.launch import Kernel, attributes_of
from pytest_gpuperf.device.placeholder import PlaceholderDevice


def make_kernel(*parameters: str | int, device: Any = None, native: str | None = None, **binary: Any) -> Kernel:
    binaries = {arch: make_binary(*parameters, arch=arch, **binary) for arch in ("sm_80", "sm_90")}
    return Kernel(binaries, device=device or PlaceholderDevice(), native=native)


def test_a_kernel_shows_the_evidence_of_this_gpu_or_of_the_first_target() -> None:
    binaries = {"sm_80": make_binary(arch="sm_80", registers=40), "sm_90": make_binary(registers=30)}
    absent = Kernel(binaries, device=PlaceholderDevice(), native=None)
    present = Kernel(binaries, device=PlaceholderDevice(), native="sm_90", targets=["sm_80"])
    assert (absent.registers, present.registers, absent.name) == (40, 30, "work")
    assert ([*absent.profiles], [*present.profiles]) == (["sm_80", "sm_90"], ["sm_80"])


@pytest.mark.parametrize(
    ("given", "wanted"), [(4, (4, 1, 1)), ((4,), (4, 1, 1)), ([4, 5], (4, 5, 1)), ((4, 5, 6), (4, 5, 6)),
                          (np.int64(4), (4, 1, 1)), ((np.int32(4), 2), (4, 2, 1))],
)  # fmt: skip
def test_grid_and_block_are_filled_up_with_ones(given: Any, wanted: Any) -> None:
    launch = make_kernel().launch(grid=given, block=given)
    assert (launch.grid, launch.block) == (wanted, wanted)


@pytest.mark.parametrize("given", [0, (4, 0), (-1,), (), (1, 2, 3, 4), 1.5, "8", None, (2, None)])
def test_what_is_no_grid_is_refused(given: Any) -> None:
    for what, other in (("grid", "block"), ("block", "grid")):
        with pytest.raises(LaunchError, match=rf"^{what}=.*1 to 3 whole numbers"):
            make_kernel().launch(**{what: given, other: 1})  # type: ignore[arg-type]


BEYOND = r"grid=\(2147483648, 1, 1\) is beyond the device's limit of \(2147483647, 65535, 65535\)"


@pytest.mark.parametrize(
    ("binary", "configuration", "words"),
    [
        ({}, {"grid": 2**31}, BEYOND),
        ({}, {"grid": (1, 65536)}, r"grid=\(1, 65536, 1\) is beyond"),
        ({}, {"block": (1, 1, 65)}, r"limit of \(1024, 1024, 64\)"),
        ({}, {"block": (32, 33)}, "has 1056 threads, and the device or its __launch_bounds__ allow 1024"),
        ({"bound": 256}, {"block": (32, 9)}, "288 threads, and the device or its __launch_bounds__ allow 256"),
        ({"required_block": (32, 4, 1)}, {"block": 128}, r"\(128, 1, 1\), .* compiled for \(32, 4, 1\) alone"),
        ({}, {"shared_bytes": -1}, "-1 of dynamic shared memory"),
        ({}, {"shared_bytes": 1.5}, "shared_bytes=1.5: it takes a whole number"),
        ({}, {"shared_bytes": 227 * 1024 + 1}, "beyond the device's limit of 232448"),
        *(({}, {"args": args}, "args takes a tuple") for args in (5, None, np.zeros(4), {1: 2})),
    ],
)
def test_what_the_kernel_or_the_device_cannot_do_is_refused(
    binary: dict[str, Any], configuration: dict[str, Any], words: str
) -> None:
    with pytest.raises(LaunchError, match=words):
        make_kernel(**binary).launch(**{"grid": 1, "block": 1, **configuration})
    assert make_kernel(bound=256).launch(1, 256).block == (256, 1, 1)
    assert make_kernel(required_block=(32, 4, 1)).launch(1, (32, 4)).block == (32, 4, 1)


def test_identity_says_what_runs_and_nothing_of_the_contents() -> None:
    device = PlaceholderDevice()
    kernel = make_kernel("float const*", "float*", "int", device=device)
    arrays = device.arrays.random((1024, 32, 32), seed=1), device.arrays.empty((1024, 32, 32))
    identity = kernel.launch(grid=1024, block=(32, 32), args=(*arrays, 7), shared_bytes=64).identity()
    assert (identity.code, identity.source, identity.toolchain) == ("c0de", "50", "nvrtc 13.0.88")
    assert identity.launch == "grid=(1024, 1, 1) block=(32, 32, 1) shared=64"
    assert identity.arguments == ("float32[1024,32,32]", "float32[1024,32,32]", "int32=7")


def test_records_carry_the_occupancy_of_the_launch_for_every_target() -> None:
    records = make_kernel(registers=40).launch(grid=1, block=(32, 8), shared_bytes=20 << 10).records()
    assert [*records] == ["sm_80", "sm_90"]
    assert records["sm_80"].occupancy.blocks_per_sm == 6  # type: ignore[union-attr]
    assert (records["sm_90"].block, records["sm_90"].dynamic_shared_bytes) == ((32, 8, 1), 20 << 10)


def test_a_launch_loads_once_and_hands_over_fitted_arguments() -> None:
    device: Any = NotingDevice()
    device.arrays = CupyArrays(FakeCupy())
    array = device.arrays.zeros(8, "float32")
    launch = make_kernel(8, 4, device=device, native="sm_90").launch(grid=2, block=4, args=(array, 8))
    launch()
    launch()
    assert [entry[0] for entry in device.log] == ["load", "launch", "launch"]
    _, configuration, (given, number) = device.log[2]
    assert configuration == launch.configuration == ((2, 1, 1), (4, 1, 1), 0, PLAIN)
    assert (given is array, type(number), launch.arguments) == (True, np.int32, (array, 8))


def test_without_a_gpu_a_launch_can_be_formed_but_not_run() -> None:
    launch = make_kernel(4).launch(grid=1, block=1, args=(1,))
    with pytest.raises(DeviceNeeded, match=r"needs a GPU: work is launched"):
        launch()


# --- cooperative launches and clusters -----------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "attributes", "entry"),
    [
        ({"cooperative": True}, (True, None), " cooperative"),
        ({"cluster": 2}, (False, (2, 1, 1)), " cluster=(2, 1, 1)"),
        ({"cooperative": True, "cluster": (2, 2)}, (True, (2, 2, 1)), " cooperative cluster=(2, 2, 1)"),
    ],
)
def test_attributes_reach_the_driver_and_the_identity(given: Any, attributes: Any, entry: str) -> None:
    device = NotingDevice()
    kernel = make_kernel(device=device, native="sm_90")
    launch = kernel.launch((4, 2), 32, **given)
    launch()
    assert device.log[1] == ("launch", Configuration((4, 2, 1), (32, 1, 1), 0, LaunchAttributes(*attributes)), ())
    words = launch.identity().launch
    assert words == f"grid=(4, 2, 1) block=(32, 1, 1) shared=0{entry}"
    assert attributes_of(words) == attributes
    assert not launch.identity().same_execution(kernel.launch((4, 2), 32).identity())


class Driver:
    """The real binding's structures; the call itself is noted."""

    def __init__(self, status: str = "CUDA_SUCCESS") -> None:
        self._bindings: Any = pytest.importorskip("cuda.bindings.driver")
        self._status = status
        self.seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bindings, name)

    def cuLaunchKernelEx(self, config: Any, function: Any, parameters: int, extra: int) -> tuple[Any]:
        values = (ctypes.c_void_p * 2).from_address(parameters)
        cooperative = self._bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        self.seen = {
            "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
            "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
            "shared": config.sharedMemBytes, "stream": int(config.hStream), "function": int(function),
            "attributes": [
                one.value.cooperative if one.id == cooperative else
                tuple(getattr(one.value.clusterDim, axis) for axis in "xyz") for one in config.attrs
            ],
            "count": config.numAttrs,
            "values": [ctypes.string_at(values[0] or 0, 4), ctypes.string_at(values[1] or 0, 8)],
        }  # fmt: skip
        return (getattr(self._bindings.CUresult, self._status),)


@pytest.mark.parametrize(
    ("cooperative", "cluster", "attributes"),
    [(True, None, [1]), (False, (2, 1, 1), [(2, 1, 1)]), (True, (1, 2, 1), [1, (1, 2, 1)])],
)
def test_what_the_driver_is_told(cooperative: bool, cluster: Any, attributes: list[Any]) -> None:
    driver, structure = Driver(), np.array((1, 2), dtype=[("a", "i4"), ("b", "i4")])
    launch = Configuration((4, 2, 1), (32, 1, 1), 100, LaunchAttributes(cooperative, cluster))
    launch_extended(driver, 77, 5, launch, [np.int32(6), structure])
    assert driver.seen == {
        "grid": (4, 2, 1), "block": (32, 1, 1), "shared": 100, "stream": 5, "function": 77, "attributes": attributes,
        "count": len(attributes), "values": [np.int32(6).tobytes(), structure.tobytes()],
    }  # fmt: skip
    refusing = Driver("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")
    with pytest.raises(LoadError, match=r"refuses the launch of grid=\(4, 2, 1\).*COOPERATIVE_LAUNCH_TOO_LARGE"):
        launch_extended(refusing, 77, 5, launch, [np.int32(6), structure])
