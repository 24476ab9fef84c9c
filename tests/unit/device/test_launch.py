"""``Kernel`` and ``Launch``: formed and validated anywhere, run by what the device loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import HostArrays, NotingDevice, make_binary

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import PLAIN, Configuration, LaunchAttributes
from pytest_gpuperf.device.launch import Kernel, attributes_of
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary


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


@pytest.mark.parametrize(("binary", "configuration", "words"), [
    ({}, {"grid": 2**31}, BEYOND),
    ({}, {"block": (1, 1, 65)}, r"limit of \(1024, 1024, 64\)"),
    ({}, {"block": (32, 33)}, "has 1056 threads, but the device or its __launch_bounds__ allow 1024"),
    ({"bound": 256}, {"block": (32, 9)}, "288 threads, but the device or its __launch_bounds__ allow 256"),
    ({"required_block": (32, 4, 1)}, {"block": 128}, r"\(128, 1, 1\), .* requires block=\(32, 4, 1\)"),
    ({}, {"shared_bytes": -1}, "-1 of dynamic shared memory"),
    ({}, {"shared_bytes": 1.5}, "shared_bytes=1.5: it takes a whole number"),
    ({}, {"shared_bytes": 227 * 1024 + 1}, "beyond the device's limit of 232448"),
    ({}, {"cluster": 16, "grid": 32}, "more than 8 blocks"),
    ({}, {"cluster": (1, 2), "grid": (2, 3)}, r"does not divide grid=\(2, 3, 1\)"),
    ({}, {"args": np.zeros(4)}, "args takes a tuple"),
])  # fmt: skip
def test_impossible_launch_is_refused(binary: dict[str, Any], configuration: dict[str, Any], words: str) -> None:
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


def test_a_launch_loads_once_and_hands_over_fitted_arguments() -> None:
    device: Any = NotingDevice()
    device.arrays = HostArrays()
    array = device.arrays.zeros(8, "float32")
    launch = make_kernel(8, 4, device=device, native="sm_90").launch(grid=2, block=4, args=(array, 8))
    launch()
    launch()
    assert [entry[0] for entry in device.log] == ["load", "launch", "launch"]
    _, configuration, (given, number) = device.log[2]
    assert configuration == launch.configuration == ((2, 1, 1), (4, 1, 1), 0, PLAIN)
    assert (given is array, type(number), launch.arguments) == (True, np.int32, (array, 8))


# --- cooperative launches and clusters -----------------------------------------------------------


@pytest.mark.parametrize(("given", "attributes", "entry"), [
    ({"cooperative": True}, (True, None, False), " cooperative"),
    ({"cluster": 2}, (False, (2, 1, 1), False), " cluster=(2, 1, 1)"),
    ({"pdl": True}, (False, None, True), " pdl"),
    ({"cooperative": True, "cluster": (2, 2), "pdl": True}, (True, (2, 2, 1), True),
     " cooperative cluster=(2, 2, 1) pdl"),
])  # fmt: skip
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


# --- variables of the module -----------------------------------------------------------------------


SOURCE = """
__constant__ float weights[LENGTH];
namespace limits { __device__ int most; }
extern "C" __global__ void work(float* x) { x[threadIdx.x] += weights[threadIdx.x] + limits::most; printf("x"); }
"""
WEIGHTS = np.arange(9, dtype="float32")


def compiled(length: int = 9) -> KernelBinary:
    return compile_kernel(KernelSource(SOURCE, "work", options=(f"-DLENGTH={length}",)), "sm_90")


@pytest.fixture
def kernel() -> Kernel:
    return Kernel({"sm_90": compiled()}, device=NotingDevice(), native="sm_90")


def test_it_is_written_when_the_module_is_loaded_and_at_once_after(kernel: Kernel) -> None:
    log: list[Any] = kernel.device.log  # type: ignore[attr-defined]
    kernel.set_constant("weights", WEIGHTS)
    kernel.set_constant("limits::most", np.int32(7))
    assert log == []
    launch = kernel.launch(1, 9, (None,))
    launch()
    kernel.set_constant("weights", WEIGHTS + 1)
    launch()
    written = [entry[1:] if entry[0] == "write" else entry[0] for entry in log]
    assert written == [
        "load", ("weights", WEIGHTS.tobytes()), ("_ZN6limits4mostE", b"\7\0\0\0"), "launch",
        ("weights", (WEIGHTS + 1).tobytes()), "launch",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "told"), [
    ("weight", WEIGHTS, r"no __constant__ or __device__ variable of that name; it has .*weights \(36 bytes\)"),
    ("weights", WEIGHTS[:8], "given numpy.ndarray of 32 bytes: it takes a NumPy array or scalar of 36"),
    ("weights", [1.0] * 9, "was given builtins.list of no bytes: it takes a NumPy array or scalar"),
    ("$str", np.int16(1), "no __constant__ or __device__ variable"),
])  # fmt: skip
def test_what_is_refused(kernel: Kernel, name: str, value: Any, told: str) -> None:
    with pytest.raises(LaunchError, match=told):
        kernel.set_constant(name, value)


def test_another_machine_code_that_cannot_be_filled_alike_is_told(kernel: Kernel) -> None:
    kernel.set_constant("weights", WEIGHTS)
    recorded = kernel.launch(1, 9, (None,)).identity().launch
    kernel.check_variables(compiled(), recorded)
    other = Kernel({"sm_90": compiled()}, device=NotingDevice(), native="sm_90")
    other.check_variables(compiled(), "grid=(1, 1, 1) block=(9, 1, 1) shared=0")
    for one, length, words in ((kernel, 16, "64 bytes was set .*, but 36 bytes"), (other, 9, "36 .*, but no bytes")):
        with pytest.raises(LaunchError, match=rf"its variable weights of {words} are set now"):
            one.check_variables(compiled(length), recorded)
