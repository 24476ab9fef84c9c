"""``Kernel`` and ``Launch``: formed and validated anywhere, run by what the device loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import FakeCupy, make_binary

from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.device.interface import PLAIN, LoadedKernel
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary


class HostDevice(PlaceholderDevice):
    """Makes NumPy arrays and notes what is launched."""

    def __init__(self) -> None:
        super().__init__()
        from pytest_gpuperf.device.arrays import CupyArrays

        self.arrays: Any = CupyArrays(FakeCupy())
        self.loaded: list[KernelBinary] = []
        self.launched: list[Any] = []

    def load(self, binary: KernelBinary) -> LoadedKernel:
        self.loaded.append(binary)
        return lambda launch, args: self.launched.append((launch, args))  # type: ignore[return-value]


def make_kernel(*parameters: str | int, device: Any = None, native: str | None = None, **binary: Any) -> Kernel:
    archs = ("sm_80", "sm_90")
    binaries = {arch: make_binary(*parameters, arch=arch, **binary) for arch in archs}
    kernel = Kernel(binaries, device=device or PlaceholderDevice(), native=native)
    kernel.ptx_of = lambda arch: f"PTX for {arch}"
    return kernel


def test_a_kernel_shows_the_evidence_of_this_gpu_or_of_the_first_target() -> None:
    binaries = {"sm_80": make_binary(arch="sm_80", registers=40), "sm_90": make_binary(registers=30)}
    absent = Kernel(binaries, device=PlaceholderDevice(), native=None)
    present = Kernel(binaries, device=PlaceholderDevice(), native="sm_90", targets=["sm_80"])
    assert (absent.registers, present.registers) == (40, 30)
    assert absent.name == "work"
    assert list(absent.profiles) == ["sm_80", "sm_90"]
    assert list(present.profiles) == ["sm_80"]
    assert present.profile.registers == present.binary.profile.registers


def test_ptx_is_made_for_the_architecture_asked_for() -> None:
    kernel = make_kernel()
    assert kernel.ptx() == "PTX for sm_80"
    assert kernel.ptx("sm_90") == "PTX for sm_90"


@pytest.mark.parametrize(
    ("given", "wanted"), [(4, (4, 1, 1)), ((4,), (4, 1, 1)), ((4, 5), (4, 5, 1)), ([4, 5, 6], (4, 5, 6)),
                          (np.int64(4), (4, 1, 1)), ((np.int32(4), 2), (4, 2, 1))],
)  # fmt: skip
def test_grid_and_block_are_filled_up_with_ones(given: Any, wanted: Any) -> None:
    launch = make_kernel().launch(grid=given, block=given)
    assert launch.grid == wanted
    assert launch.block == wanted


@pytest.mark.parametrize("given", [0, (4, 0), (-1,), (), (1, 2, 3, 4), 1.5, (1.0,), "8", None, (2, None)])
def test_what_is_no_grid_is_refused(given: Any) -> None:
    with pytest.raises(LaunchError, match=r"^grid=.*1 to 3 whole numbers"):
        make_kernel().launch(grid=given, block=1)
    with pytest.raises(LaunchError, match=r"^block=.*1 to 3 whole numbers"):
        make_kernel().launch(grid=1, block=given)


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        (
            {"grid": 2**31, "block": 1},
            "grid=(2147483648, 1, 1) is beyond the device's limit of (2147483647, 65535, 65535)",
        ),
        ({"grid": (1, 65536), "block": 1}, "grid=(1, 65536, 1) is beyond"),
        ({"grid": 1, "block": (1, 1, 65)}, "limit of (1024, 1024, 64)"),
        ({"grid": 1, "block": (32, 33)}, "has 1056 threads, and the device or its __launch_bounds__ allow 1024"),
        ({"grid": 1, "block": 1, "shared_bytes": -1}, "-1 of dynamic shared memory"),
        ({"grid": 1, "block": 1, "shared_bytes": 1.5}, "shared_bytes=1.5: it takes a whole number"),
        ({"grid": 1, "block": 1, "shared_bytes": 227 * 1024 + 1}, "beyond the device's limit of 232448"),
    ],
)
def test_a_configuration_beyond_the_device_is_refused(configuration: dict[str, Any], words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        make_kernel().launch(**configuration)
    assert words in str(caught.value)


def test_launch_bounds_are_kept() -> None:
    kernel = make_kernel(bound=256)
    kernel.launch(grid=1, block=256)
    with pytest.raises(LaunchError, match=r"288 threads, and the device or its __launch_bounds__ allow 256"):
        kernel.launch(grid=1, block=(32, 9))


@pytest.mark.parametrize("args", [5, None, np.zeros(4), len, {1: 2}])
def test_args_is_a_tuple(args: Any) -> None:
    with pytest.raises(LaunchError, match=r"args takes a tuple"):
        make_kernel(8).launch(grid=1, block=1, args=args)


def test_identity_says_what_runs_and_nothing_of_the_contents() -> None:
    device = PlaceholderDevice()
    kernel = make_kernel("float const*", "float*", "int", device=device)
    arrays = device.arrays.random((1024, 32, 32), seed=1), device.arrays.empty((1024, 32, 32))
    identity = kernel.launch(grid=1024, block=(32, 32), args=(*arrays, 7), shared_bytes=64).identity()
    assert identity.code == "c0de"
    assert identity.launch == "grid=(1024, 1, 1) block=(32, 32, 1) shared=64"
    assert identity.arguments == ("float32[1024,32,32]", "float32[1024,32,32]", "int32=7")
    assert (identity.source, identity.toolchain) == ("50", "nvrtc 13.0.88")


def test_records_carry_the_occupancy_of_the_launch_for_every_target() -> None:
    launch = make_kernel(registers=40).launch(grid=1, block=(32, 8), shared_bytes=20 << 10)
    records = launch.records()
    assert list(records) == ["sm_80", "sm_90"]
    assert records["sm_80"].occupancy.blocks_per_sm == 6  # type: ignore[union-attr]
    assert records["sm_90"].block == (32, 8, 1)
    assert records["sm_90"].dynamic_shared_bytes == 20 << 10
    assert launch.threads_per_block == 256
    assert launch.binary.arch == "sm_80"


def test_a_launch_loads_once_and_hands_over_fitted_arguments() -> None:
    device = HostDevice()
    array = device.arrays.zeros(8, "float32")
    kernel = make_kernel(8, 4, device=device, native="sm_90")
    launch = kernel.launch(grid=2, block=4, args=(array, 8))
    launch()
    launch()
    assert [binary.arch for binary in device.loaded] == ["sm_90"]
    configuration, (given, number) = device.launched[1]
    assert configuration == launch.configuration == ((2, 1, 1), (4, 1, 1), 0, PLAIN)
    assert given is array
    assert isinstance(number, np.int32)
    assert launch.arguments == (array, 8)


def test_without_a_gpu_a_launch_can_be_formed_but_not_run() -> None:
    launch = make_kernel(4).launch(grid=1, block=1, args=(1,))
    with pytest.raises(DeviceNeeded, match=r"needs a GPU: work is launched"):
        launch()


def test_a_kernel_that_requires_a_block_is_launched_with_no_other() -> None:
    kernel = make_kernel(required_block=(32, 4, 1))
    assert kernel.launch(1, (32, 4)).block == (32, 4, 1)
    with pytest.raises(
        LaunchError, match=r"block=\(128, 1, 1\), and its machine code was compiled for \(32, 4, 1\) alone"
    ):
        kernel.launch(1, 128)
