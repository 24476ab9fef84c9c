"""What surrounds a Python block of the documentation, so that it runs as a test on a simulated GPU."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from suite_under_test import HERE

CONFTEST = """
import sys
sys.path.insert(0, {here!r})
import pytest
from simulated_gpu import SimulatedGpu

def copy(source, to, *_):
    to[...] = source

def transpose(source, to):
    to[...] = source.swapaxes(1, 2)

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return SimulatedGpu(implementations=dict(copy=copy, transpose_padded=transpose, tensor=copy), block_ns=1.1)
"""
COPY = """
extern "C" __global__ void copy(const float* from, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
"""
TRANSPOSE = """
extern "C" __global__ void transpose_padded(const float* from, float* to)
{
    __shared__ float tile[TILE][TILE + 1];
    from += blockIdx.x * TILE * TILE, to += blockIdx.x * TILE * TILE;
    tile[threadIdx.y][threadIdx.x] = from[threadIdx.y * TILE + threadIdx.x];
    __syncthreads();
    to[threadIdx.y * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
BLUR = """
#include "weight.h"
template <int WIDTH> __global__ void blur(const float* from, float* to, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = WEIGHT * a * (from[i] + from[(i + WIDTH + TILE) % n]);
}
"""
TENSOR = """
extern "C" __global__ void tensor(const float* from, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float d0 = from[i % n], d1 = 0.0f, d2 = 0.0f, d3 = 0.0f;
    unsigned a = threadIdx.x, b = a + 1;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a), "r"(b), "r"(a));
    if (i < n) to[i] = d0 + d1 + d2 + d3;
}
"""
PART = """
struct Range { int first; double weight; };
__global__ void part(Range part, const float* start, float* to)
{
    to[threadIdx.x] = (start ? start[threadIdx.x] : 0.0f) + part.weight + part.first;
}
"""
SMOOTH = """
__constant__ float weights[3];
__global__ void smooth(const float* from, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = weights[0] * from[i] + weights[1] + weights[2];
}
"""
MATMUL = """
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void matmul(const __grid_constant__ CUtensorMap tiles, float* to)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(&tiles));
    to[threadIdx.x] = 1;
}
"""
WHOLE = """
__global__ void scale(float* x, uint n) { if (threadIdx.x < n) x[threadIdx.x] *= M_PI; }
"""
LAUNCH = """
n = 1 << 22
x = gpu.random(n, seed=1)
y = gpu.empty_like(x)
launch = cuda_kernel("kernels/{name}.cu", "{name}").launch(grid=n // 1024, block=1024, args=(x, y, n))
"""
A_LAUNCH = LAUNCH.format(name="copy")
LIBRARY = """
import types, numpy

class DeviceArray(numpy.ndarray):
    def set(self, host):
        self[...] = host

x = x.view(DeviceArray)
unsorted = numpy.array(x)
cp = types.SimpleNamespace(sort=lambda array: launch())
"""
SOLUTION = """
import types

n = 16
solution = types.SimpleNamespace(matmul=lambda a, b: (launch(), a @ b)[1])
reference = lambda a, b: a @ b
"""
BY_NVRTC = """
def without_nvcc(*given, compiler, options, compile=cuda_kernel):
    assert (compiler, options) == ("nvcc", ["-O3"])
    return compile(*given)

cuda_kernel = without_nvcc
"""
"""Not every machine has nvcc; tests/unit/compile/test_nvcc.py compiles by it."""


class Scene(NamedTuple):
    """What the page takes for granted."""

    before: str = ""
    """Of a whole test: the module above it.  Of a few lines: the lines of the test above them."""
    arguments: tuple[str, ...] = ("--gpuperf-arch=sm_90",)


SCENES = {
    ("docs/how-to/writing-tests.md", "Writing tests"): Scene(),
    ("docs/how-to/writing-tests.md", "Compile a kernel and launch it"): Scene(
        "n = 4096\nx, y = gpu.random(n, seed=1), gpu.zeros(n)\n"
    ),
    ("docs/how-to/writing-tests.md", "Cooperative and dependent launches, clusters"): Scene(
        "n = 64 * 256\nx, y = gpu.random(n, seed=1), gpu.zeros(n)\n"
    ),
    ("docs/how-to/writing-tests.md", "Structures, vectors and null pointers"): Scene(
        "import numpy\ny = gpu.zeros(256)\n"
    ),
    ("docs/how-to/writing-tests.md", "Constants and variables of the module"): Scene(
        "import numpy\nn = 4096\nx, y = gpu.random(n, seed=1), gpu.zeros(n)\n"
    ),
    ("docs/how-to/writing-tests.md", "Texture objects and TMA descriptors"): Scene(
        "y = gpu.zeros(4096)\nencoded = lambda array: bytes(128)\n", ("--gpuperf-arch=sm_90a",)
    ),
    ("docs/how-to/writing-tests.md", "One kernel for several tests"): Scene(
        "import pytest\n", ("--gpuperf-arch=sm_90", "-k", str(1 << 20))
    ),
    ("docs/how-to/writing-tests.md", "Make data and compare results"): Scene(
        "n = 64\nw = gpu.random((32, 4), seed=2)\ny = gpu.random((n, 32), seed=1) @ w\n"
    ),
    ("docs/how-to/compare.md", "Compare with a reference"): Scene(),
    ("docs/how-to/writing-tests.md", "Measure a workload"): Scene(A_LAUNCH + LIBRARY),
    ("docs/how-to/writing-tests.md", "Assert on what was measured"): Scene(
        f"{LAUNCH.format(name='tensor')}\nresult = gpuperf(launch, bytes=2 * x.nbytes)\n",
        ("--gpuperf-arch=sm_80,sm_90",),
    ),
    ("docs/how-to/writing-tests.md", "Set what holds for one test"): Scene("import pytest\n"),
    ("docs/how-to/secondary-metrics.md", "Gate memory, host time, overlap and errors"): Scene(
        A_LAUNCH.replace("1 << 22", "4096") + "attention = lambda: (launch(), gpu.zeros(n))[1]\n"
    ),
    ("docs/how-to/secondary-metrics.md", "Overlap of streams"): Scene(
        A_LAUNCH.replace("1 << 22", "4096") + "gpu._device.overlap = 0.6\ncopies_beside_kernels = launch\n"
    ),
    ("docs/how-to/secondary-metrics.md", "Errors"): Scene(A_LAUNCH.replace("1 << 22", "4096") + "x[...] = 1\n"),
    ("docs/how-to/writing-tests.md", "Fresh inputs and poisoned outputs"): Scene("n = 4096\n"),
    ("docs/how-to/writing-tests.md", "Inputs of a callable"): Scene(A_LAUNCH.replace("1 << 22", "4096") + SOLUTION),
    ("docs/how-to/other-compilers.md", "Files of whole programs"): Scene(before=BY_NVRTC),
    ("docs/how-to/counters.md", "Metrics of your own"): Scene(
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef provide(cuda_kernel, gpu):\n    global launch\n"
        + textwrap.indent(A_LAUNCH, "    ")
    ),
    ("docs/reference/api.md", "Public names"): Scene(),
}
"""By page and heading."""


def files(scene: Scene, block: str, name: str) -> dict[str, str]:
    """The folder of a block that is run: its test, what that compiles and the simulated GPU."""
    if "def test_" in block:
        test = f"{scene.before}\n{block}"
    else:
        body = textwrap.indent(f"{scene.before}\n{block}", "    ")
        test = f"def test_block(cuda_kernel, gpu, gpuperf):\n{body}"
    return {
        "conftest.py": CONFTEST.format(here=str(HERE)), name: test, "kernels/copy.cu": COPY,
        "kernels/transpose.cu": TRANSPOSE, "kernels/blur.cu": BLUR, "kernels/tensor.cu": TENSOR, "whole.cu": WHOLE,
        "kernels/smooth.cu": SMOOTH, "kernels/matmul.cu": MATMUL,
        "kernels/whole_grid.cu": COPY.replace("copy", "whole_grid"), "kernels/part.cu": PART,
        "include/weight.h": "#define WEIGHT 0.5f\n",
    }  # fmt: skip
