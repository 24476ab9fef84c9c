"""``set_constant``: names, sizes, what is written when, and its part in the identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import NotingDevice

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.model.evidence import KernelBinary

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


def test_the_content_is_part_of_the_identity(kernel: Kernel) -> None:
    launch = kernel.launch(1, 9, (None,))
    plain = launch.identity()
    kernel.set_constant("weights", WEIGHTS)
    first = launch.identity()
    assert first.launch.startswith(f"{plain.launch} constant weights=")
    kernel.set_constant("weights", WEIGHTS + 1)
    assert not first.same_execution(launch.identity())
    kernel.set_constant("weights", WEIGHTS.copy())
    assert launch.identity().same_execution(first)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("weight", WEIGHTS, r"no __constant__ or __device__ variable of that name; it has .*weights \(36 bytes\)"),
        ("weights", WEIGHTS[:8], "given numpy.ndarray of 32 bytes: it takes a NumPy array or scalar of 36"),
        ("weights", [1.0] * 9, "was given builtins.list of no bytes: it takes a NumPy array or scalar"),
        ("$str", np.int16(1), "no __constant__ or __device__ variable"),
    ],
)
def test_what_is_refused(kernel: Kernel, name: str, value: Any, told: str) -> None:
    with pytest.raises(LaunchError, match=told):
        kernel.set_constant(name, value)


def test_another_machine_code_that_cannot_be_filled_alike_is_told(kernel: Kernel) -> None:
    kernel.set_constant("weights", WEIGHTS)
    recorded = kernel.launch(1, 9, (None,)).identity().launch
    kernel.variables.check_other(compiled(), recorded)
    other = Kernel({"sm_90": compiled()}, device=NotingDevice(), native="sm_90")
    other.variables.check_other(compiled(), "grid=(1, 1, 1) block=(9, 1, 1) shared=0")
    for one, length, words in ((kernel, 16, "64 bytes was set .*, and 36 bytes"), (other, 9, "36 .*, and no bytes")):
        with pytest.raises(LaunchError, match=rf"its variable weights of {words} are set now"):
            one.variables.check_other(compiled(length), recorded)
