"""The device on a real GPU: load, launch, arrays, state, lock and ceilings."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import LaunchError, LoadError
from pytest_gpuperf.device.discovery import VARIABLE, open_device
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.launch import Kernel

pytestmark = pytest.mark.gpu

SCALE = """
struct Pair { float factor; int shift; };

__global__ void scale(const float* __restrict__ from, float* to, double factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = (float)(from[i] * factor);
}

__global__ void by_value(Pair pair, float* to, bool twice, short index)
{
    to[index] = pair.factor * (twice ? 2 : 1) + pair.shift;
}

extern "C" __global__ void staged(const int* from, int* to, int words)
{
    extern __shared__ int tile[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) tile[i] = from[i];
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x) to[i] = tile[words - 1 - i];
}
"""


def compiled(device: CudaDevice, name: str, text: str = SCALE) -> Kernel:
    arch = device.facts.arch
    binaries = compile_for(KernelSource(text=text, name=name), [arch])
    return Kernel(binaries, device=device, native=arch)


def test_facts_are_those_of_the_architecture(cuda_device: CudaDevice) -> None:
    facts, limits = cuda_device.facts, limits_of(cuda_device.facts.arch)
    assert facts.uuid.startswith(("GPU-", "MIG-"))
    assert len(facts.uuid) == 40
    assert facts.slug.startswith("nvidia")
    assert facts.max_threads_per_sm == limits.threads_per_sm
    assert facts.max_blocks_per_sm == limits.blocks_per_sm
    assert facts.shared_bytes_per_block_optin == limits.shared_bytes_per_block
    assert facts.shared_bytes_per_sm == limits.shared_bytes_per_sm
    assert facts.l2_bytes > 1 << 20
    assert facts.memory_bytes > 1 << 30


def test_a_kernel_is_loaded_launched_and_right(cuda_device: CudaDevice, gpu: Gpu) -> None:
    n = 100_003
    source = gpu.random(n, seed=1)
    target = gpu.empty_like(source)
    launch = compiled(cuda_device, "scale").launch(grid=-(-n // 256), block=256, args=(source, target, 0.5, n))
    launch()
    gpu.assert_equal(target, source * np.float32(0.5))
    assert launch.identity().arguments[:2] == (f"float32[{n}] align=256",) * 2
    assert launch.identity().arguments[2:] == ("float64=0.5", f"int32={n}")


def test_shared_memory_beyond_48_kb_is_granted(cuda_device: CudaDevice, gpu: Gpu) -> None:
    words = cuda_device.facts.shared_bytes_per_block_optin // 4
    source = gpu.random(words, "int32", seed=2, low=-(2**31), high=2**31)
    target = gpu.empty_like(source)
    kernel = compiled(cuda_device, "staged")
    kernel.launch(grid=1, block=256, args=(source, target, words), shared_bytes=4 * words)()
    gpu.assert_equal(target, source[::-1].copy())
    with pytest.raises(LaunchError, match="beyond the device's limit"):
        kernel.launch(grid=1, block=256, args=(source, target, words), shared_bytes=4 * words + 4)


def test_48_kb_of_dynamic_shared_memory_beside_static_is_granted(cuda_device: CudaDevice, gpu: Gpu) -> None:
    text = """
    extern "C" __global__ void both(int* out)
    {
        extern __shared__ int dynamic[];
        __shared__ int counter;
        if (threadIdx.x == 0) counter = 5;
        dynamic[12287 - threadIdx.x] = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = dynamic[12256 + threadIdx.x] + counter;
    }
    """
    out = gpu.empty(32, "int32")
    compiled(cuda_device, "both", text).launch(grid=1, block=32, args=(out,), shared_bytes=48 << 10)()
    assert gpu.to_host(out).tolist() == [36 - lane for lane in range(32)]


def test_machine_code_of_another_architecture_is_refused(cuda_device: CudaDevice) -> None:
    other = "sm_80" if cuda_device.facts.arch != "sm_80" else "sm_90"
    foreign = compile_for(KernelSource(text=SCALE, name="scale"), [other])[other]
    with pytest.raises(LoadError, match=rf"scale \({other}\): the driver refuses its cubin"):
        cuda_device.load(foreign)


def split_mix_floats(seed: int, positions: np.ndarray[Any, Any]) -> Any:
    """What ``gpu.random`` is to make of these positions, in NumPy."""
    from pytest_gpuperf.device.arrays import stream_of

    with np.errstate(over="ignore"):
        z = np.uint64(stream_of(seed)) + (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.float64) * 2.0**-24).astype(np.float32)


def test_random_numbers_are_those_of_every_other_gpu(gpu: Gpu) -> None:
    positions = np.arange(100_000)
    found = gpu.to_host(gpu.random(100_000, seed=7))
    np.testing.assert_array_equal(found, split_mix_floats(7, positions))


def test_comparisons_run_on_the_gpu_and_say_where(gpu: Gpu) -> None:
    expected = gpu.random((300, 1000, 100), seed=4)
    actual = expected.copy()
    gpu.assert_equal(actual, expected)
    gpu.assert_equal(actual.swapaxes(1, 2), expected.swapaxes(1, 2))
    actual[299, 5, 7] += 1
    actual[0, 0, 0] = float("nan")
    with pytest.raises(AssertionError, match=r"2 of 30000000 elements differ .*the worst at \[0, 0, 0\]: got nan"):
        gpu.assert_equal(actual, expected)
    actual[0, 0, 0] = expected[0, 0, 0]
    with pytest.raises(AssertionError, match=r"1 of 30000000 .*the worst at \[299, 5, 7\].*off by 1"):
        gpu.assert_allclose(actual, expected.astype("float64"), rtol=1e-3)
    gpu.assert_allclose(actual, gpu.to_host(actual))
    negative = gpu.full(2, -0.0)
    with pytest.raises(AssertionError, match="2 of 2"):
        gpu.assert_equal(negative, gpu.zeros(2))


def test_the_flush_empties_the_l2(cuda_device: CudaDevice) -> None:
    import cupy

    from pytest_gpuperf.device.interface import Slot

    data = cupy.ones(cuda_device.facts.l2_bytes // 16, cupy.float32)
    total = cupy.empty((), cupy.float32)
    timer = cuda_device.timer()
    slot = Slot(lambda: cupy.sum(data, out=total), 15)
    cold, warm = (float(np.median(timer.measure([slot], cache)[0])) for cache in ("cold", "warm"))
    assert cold > 1.1 * warm


def test_ceilings_are_plausible_and_measured_once(cuda_device: CudaDevice, gpu: Gpu) -> None:
    facts = cuda_device.facts
    bandwidth, throughput = gpu.copy_bandwidth, gpu.fma_throughput
    if facts.slug == "nvidia-h200":
        assert 0.86 * 4.8e12 < bandwidth < 0.9 * 4.8e12  # what the driver's copy reaches
    else:
        assert 1e11 < bandwidth < 2e13
        assert throughput < 2 * facts.sm_count * 128 * 3.2e9
    start = time.perf_counter()
    assert (gpu.copy_bandwidth, gpu.fma_throughput) == (bandwidth, throughput)
    assert time.perf_counter() - start < 0.01


def test_roofs_are_those_of_the_data_sheet(cuda_device: CudaDevice, gpu: Gpu) -> None:
    """NVIDIA H200 data sheet: 4.8 TB/s, 67 and 34 TFLOP/s of FP32 and FP64, 989 of dense BF16."""
    start = time.perf_counter()
    roofs = gpu.roofs
    assert time.perf_counter() - start < 5
    assert roofs["dram"] < roofs["l2"] < roofs["shared"]
    if cuda_device.facts.slug == "nvidia-h200":
        shares = {"dram": 4.8e12, "fp32": 67e12, "fp64": 34e12, "int32": 33.5e12, "bf16": 989e12}
        least = {"dram": 0.9, "fp32": 0.95, "fp64": 0.95, "int32": 0.95, "bf16": 0.75}
        assert [name for name, most in shares.items() if not least[name] < roofs[name] / most < 1.02] == []


@pytest.mark.parametrize("form", ["index", "uuid"])
def test_a_worker_stays_on_the_callers_gpu(cuda_device: CudaDevice, form: str) -> None:
    entry = os.environ.get(VARIABLE, "0").split(",")[0] if form == "index" else cuda_device.facts.uuid
    script = (
        "import os\nfrom pytest_gpuperf.device.discovery import open_device\n"
        f"facts = open_device(5).facts\nprint(facts.uuid, os.environ[{VARIABLE!r}])\n"
    )
    found = subprocess.run([sys.executable, "-c", script], env={**os.environ, VARIABLE: entry}, capture_output=True,
                           text=True, check=True).stdout.split()  # fmt: skip
    assert found == [cuda_device.facts.uuid, entry]


def test_peaks_do_not_depend_on_the_caller_s_stream(cuda_device: CudaDevice) -> None:
    """The trial runs of the timer that they open are captured: launched on the legacy stream they could not be."""
    import cupy

    device = open_device()  # one that has no timer yet
    assert isinstance(device, CudaDevice)
    assert device.facts.uuid == cuda_device.facts.uuid
    with cupy.cuda.Stream.null:
        assert device.peak("fp32") > 1e12
