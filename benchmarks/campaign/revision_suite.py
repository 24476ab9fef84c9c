"""What ``paired_processes`` compares with another revision: the text of its tests, and of their kernels."""

from __future__ import annotations

SUITE = """\
import functools

import pytest

MORE = {more}
TIMES = {times}
SALT = {salt}
RARELY = {"test_cupy_long": 8, "test_torch_block": 3, "test_torch_compiled": 3, "test_torch_matmul": 3,
          "test_triton_autotuned": 3, "test_numba": 3}


def pytest_generate_tests(metafunc):  # those that take a second each are run less often
    times = TIMES // RARELY.get(metafunc.function.__name__, 1)
    metafunc.fixturenames.append("again")
    metafunc.parametrize("again", range(max(1, times)))


def more(number, share=1):  # of what takes so much of the time
    return int(number * (1 + MORE / share / 100))


@pytest.mark.parametrize("name, elements", [("1_M", 1_000_000), ("12.8_M", 12_800_000), ("128_M", 128_000_000)])
def test_cupy_expression(gpu, gpuperf, name, elements):
    cupy = pytest.importorskip("cupy")
    x, y = cupy.random.rand(more(elements), dtype="float32"), cupy.empty(more(elements), dtype="float32")
    gpuperf(lambda: cupy.multiply(x, 2, out=y), name=name)


def test_cupy_sequence_of_12_launches(gpu, gpuperf):
    cupy = pytest.importorskip("cupy")
    x = cupy.random.rand(more(8_000_000, 0.97), dtype="float32")

    def twelve():
        for _ in range(12):
            cupy.add(x, 1, out=x)

    gpuperf(twelve, name="12 launches", reset=lambda: x.fill(0))


def test_cupy_long(gpu, gpuperf):
    cupy = pytest.importorskip("cupy")
    x = cupy.zeros((more(200), 16_000_000), dtype="float32")
    gpuperf(lambda: cupy.negative(x, out=x), name="3,200 M elements")


def test_cupy_sum(gpu, gpuperf):
    cupy = pytest.importorskip("cupy")
    x = cupy.random.rand(more(100_000_000, 0.88), dtype="float32")
    gpuperf(lambda: x.sum(), name="sum")


def torch_of(gpu):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    return torch


def test_torch_softmax(gpu, gpuperf):
    torch = torch_of(gpu)
    x = torch.randn(more(8192), 4096, device="cuda")
    gpuperf(lambda: torch.softmax(x, 1), name="softmax")


def test_torch_block(gpu, gpuperf):
    torch = torch_of(gpu)
    block = torch.nn.Sequential(torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 1024), torch.nn.GELU()).cuda()
    x, y = torch.randn(8192, 1024, device="cuda"), torch.randn(more(64_000_000, 0.22), device="cuda")

    def both():
        block(x)
        y.mul_(1)

    with torch.no_grad():
        gpuperf(both, name="LayerNorm, Linear, GELU, scale")


@pytest.mark.parametrize("name, steps", [("loop 10 us", 550), ("loop 100 us", 5_500), ("loop 1 ms", 55_000)])
def test_cuda_loop(cuda_kernel, gpu, gpuperf, name, steps):
    options = [f"-DWORK={more(steps, 0.9 if steps < 1000 else 1)}", f"-DSALT={SALT}"]
    out = gpu.empty(132 * 256)
    kernel = cuda_kernel("cells.cu", "loop", options=options)
    gpuperf(kernel.launch(grid=132, block=256, args=(out,)), name=name)


@pytest.mark.parametrize("name, quads", [("copy 16 MB", 1 << 20), ("copy 256 MB", 1 << 24)])
def test_cuda_copy(cuda_kernel, gpu, gpuperf, name, quads):
    options = [f"-DWORK={more(quads, 0.8 if quads == 1 << 20 else 1)}", f"-DSALT={SALT}"]
    x = gpu.random(4 * quads * 11 // 10, seed=1)
    kernel = cuda_kernel("cells.cu", "copy", options=options)
    gpuperf(kernel.launch(grid=132 * 8, block=256, args=(x, gpu.empty_like(x))), name=name)


@functools.cache
def torch_compiled(torch):
    return torch.compile(lambda x: torch.nn.functional.gelu(x * 2 + 1))


def test_torch_compiled(gpu, gpuperf):
    torch = torch_of(gpu)
    compiled = torch_compiled(torch)
    x = torch.randn(32_000_000, device="cuda")  # of another size it would be compiled anew, and tuned anew
    y = torch.randn(more(32_000_000, 0.5), device="cuda")
    compiled(x)

    def both():
        compiled(x)
        y.mul_(1)

    gpuperf(both, name="torch.compile, scale")


def test_torch_matmul(gpu, gpuperf):
    torch = torch_of(gpu)
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x = torch.randn(more(64_000_000, 0.41), device="cuda")

    def product():
        torch.matmul(a, b)
        x.mul_(1)

    gpuperf(product, name="matmul, scale")


def test_triton_autotuned(gpu, gpuperf):
    torch = torch_of(gpu)
    triton_kernels = pytest.importorskip("triton_kernels_of_suite")
    x = torch.randn(more(64_000_000, 0.65), device="cuda")
    y = torch.empty_like(x)
    triton_kernels.scale(x, y)
    gpuperf(lambda: triton_kernels.scale(x, y), name="autotuned scale")


def test_numba(gpu, gpuperf):
    pytest.importorskip("numba")
    from numba import cuda
    import numpy

    @cuda.jit
    def scale(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = 2 * x[i]

    x = cuda.to_device(numpy.ones(more(32_000_000, 0.95), dtype=numpy.float32))
    y = cuda.device_array_like(x)
    stream = cuda.external_stream(gpu.stream)
    gpuperf(lambda: scale[(x.size + 255) // 256, 256, stream](x, y), name="numba scale")
"""
TRITON = """\
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": size}) for size in (512, 1024, 2048)], key=["n"])
@triton.jit
def _scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def scale(x, y):
    _scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
"""


CUDA = """\
extern "C" __global__ void loop(float* out)
{
    float x = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < WORK; ++i) {
#pragma unroll
        for (int k = 0; k < 8; ++k) x = fmaf(x, 0.999f, 0.5f + 0.25f * SALT);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void copy(const float4* x, float4* y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < WORK; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        v.x += 0.5f + SALT;
        y[i] = v;
    }
}
"""
