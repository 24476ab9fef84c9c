"""Cooperative launches and clusters: what is checked, what the identity says, what the driver is told."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from device_samples import make_binary

from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.driver_calls import launch_extended
from pytest_gpuperf.device.interface import Configuration, LaunchAttributes
from pytest_gpuperf.device.launch import Kernel, attributes_of
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary


class Loaded:
    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def __call__(self, *launch: Any) -> None:
        self._log.append(launch)


class Noting(PlaceholderDevice):
    def __init__(self, arch: str = "sm_90") -> None:
        super().__init__(arch)
        self.log: list[Any] = []

    def load(self, binary: KernelBinary) -> Any:
        return Loaded(self.log)


def kernel_for(device: PlaceholderDevice, arch: str = "sm_90") -> Kernel:
    return Kernel({arch: make_binary(arch=arch)}, device=device, native=arch)


@pytest.mark.parametrize(
    ("given", "attributes", "entry"),
    [
        ({"cooperative": True}, LaunchAttributes(True), " cooperative"),
        ({"cluster": 2}, LaunchAttributes(cluster=(2, 1, 1)), " cluster=(2, 1, 1)"),
        (
            {"cooperative": True, "cluster": (2, 2)},
            LaunchAttributes(True, (2, 2, 1)),
            " cooperative cluster=(2, 2, 1)",
        ),
    ],
)
def test_attributes_reach_the_driver_and_the_identity(
    given: dict[str, Any], attributes: LaunchAttributes, entry: str
) -> None:
    device = Noting()
    launch = kernel_for(device).launch((4, 2), 32, **given)
    launch()
    launch.with_arguments(())()
    assert device.log == [(Configuration((4, 2, 1), (32, 1, 1), 0, attributes), ())] * 2
    words = launch.identity().launch
    assert words == f"grid=(4, 2, 1) block=(32, 1, 1) shared=0{entry}"
    assert attributes_of(words) == attributes
    assert not launch.identity().same_execution(kernel_for(device).launch((4, 2), 32).identity())


class Driver:
    """The real binding's structures; the call itself is noted."""

    def __init__(self, bindings: Any, status: str = "CUDA_SUCCESS") -> None:
        self._bindings = bindings
        self._status = status
        self.seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bindings, name)

    def cuLaunchKernelEx(self, config: Any, function: Any, parameters: int, extra: int) -> tuple[Any]:
        values = (ctypes.c_void_p * 2).from_address(parameters)
        ids = self._bindings.CUlaunchAttributeID
        shown = {
            ids.CU_LAUNCH_ATTRIBUTE_COOPERATIVE: lambda value: value.cooperative,
            ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: lambda value: tuple(
                getattr(value.clusterDim, axis) for axis in "xyz"
            ),
        }
        self.seen = {
            "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
            "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
            "shared": config.sharedMemBytes, "stream": int(config.hStream), "function": int(function),
            "attributes": [shown[one.id](one.value) for one in config.attrs], "count": config.numAttrs,
            "values": [ctypes.string_at(values[0] or 0, 4), ctypes.string_at(values[1] or 0, 8)],
        }  # fmt: skip
        return (getattr(self._bindings.CUresult, self._status),)


@pytest.mark.parametrize(
    ("cooperative", "cluster", "attributes"), [(True, None, [1]), (False, (2, 1, 1), [(2, 1, 1)]),
                                               (True, (1, 2, 1), [1, (1, 2, 1)])]
)  # fmt: skip
def test_what_the_driver_is_told(cooperative: bool, cluster: Any, attributes: list[Any]) -> None:
    driver = Driver(pytest.importorskip("cuda.bindings.driver"))
    structure = np.array((1, 2), dtype=[("a", "i4"), ("b", "i4")])
    launch = Configuration((4, 2, 1), (32, 1, 1), 100, LaunchAttributes(cooperative, cluster))
    launch_extended(driver, 77, 5, launch, [np.int32(6), structure])
    assert driver.seen == {
        "grid": (4, 2, 1), "block": (32, 1, 1), "shared": 100, "stream": 5, "function": 77, "attributes": attributes,
        "count": len(attributes), "values": [np.int32(6).tobytes(), structure.tobytes()],
    }  # fmt: skip


def test_a_launch_that_the_driver_refuses() -> None:
    driver = Driver(pytest.importorskip("cuda.bindings.driver"), "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")
    launch = Configuration((4, 2, 1), (32, 1, 1), 0, LaunchAttributes(cooperative=True))
    arguments: Any = (77, 5, launch, [np.int32(6), np.int64(1)])
    with pytest.raises(LoadError, match=r"refuses the launch of grid=\(4, 2, 1\).*COOPERATIVE_LAUNCH_TOO_LARGE"):
        launch_extended(driver, *arguments)
