"""What launches need besides arguments, on the real GPU."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.launch import Kernel

pytestmark = pytest.mark.gpu

FILLED = """
__constant__ float weights[4];
namespace limits { __device__ int shift; }
extern "C" __global__ void filled(float* to) { to[threadIdx.x] = weights[threadIdx.x] + limits::shift; }
"""


@pytest.fixture
def gpu(cuda_device: CudaDevice) -> Gpu:
    return Gpu(cuda_device)


def compiled(device: CudaDevice, name: str, text: str) -> Kernel:
    arch = device.facts.arch
    binaries = compile_for(KernelSource(text=text, name=name), [arch])
    return Kernel(binaries, device=device, native=arch, ptx=str)


def test_variables_are_filled_before_and_after_the_first_launch(cuda_device: CudaDevice, gpu: Gpu) -> None:
    kernel = compiled(cuda_device, "filled", FILLED)
    weights = np.array([1.0, 2.0, 3.0, 4.0], dtype="float32")
    kernel.set_constant("weights", weights)
    kernel.set_constant("limits::shift", np.int32(10))
    to = gpu.zeros(4)
    launch = kernel.launch(1, 4, (to,))
    launch()
    gpu.assert_equal(to, weights + 10)
    kernel.set_constant("weights", weights * 2)
    launch()
    gpu.assert_equal(to, weights * 2 + 10)
    other = cuda_device.load(kernel.binary)
    kernel.variables.fill(other, kernel.binary)
    launch.run_with(other)
    gpu.assert_equal(to, weights * 2 + 10)
