"""Wider loads: the same bytes with a quarter of the instructions, and four times the bytes in flight per thread.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and R. Bourgeois, "Five basic
performance advice for porting kernels to the GPU".
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/vector_loads_float4.cu"


@pytest.mark.parametrize("element", ["float", "float2", "float4"])
def test_every_element_arrives(cuda_kernel, gpu, element):
    x, y = (gpu.random(100_004, seed=seed, low=-1, high=1) for seed in (210, 211))
    copied, scaled, added = (gpu.empty(x.size) for _ in range(3))
    arguments = {"copy": (x, copied), "scale": (x, scaled, 2.5), "axpy": (x, y, added, 2.5)}
    kernels = {name: cuda_kernel(SOURCE, name, name_expression=f"{name}<{element}>") for name in arguments}
    for name, kernel in kernels.items():
        kernel.launch(grid=(7,), block=(256,), args=(*arguments[name], x.size))()
    gpu.assert_equal(copied, x)
    gpu.assert_allclose(scaled, 2.5 * x.astype("float64"), rtol=1e-6)
    gpu.assert_allclose(added, 2.5 * x.astype("float64") + y, rtol=1e-6, atol=2e-7)


@pytest.mark.gpuperf(budget_s=0.35)
def test_gain_of_wide_loads(cuda_kernel, gpu, gpuperf):
    src = gpu.random(2**26, seed=214)
    coefficients = np.random.default_rng(215).uniform(-1, 1, 1024).astype(np.float32)
    x, staged = gpu.random(2**20, seed=216, low=-1, high=1), gpu.array(coefficients)

    @functools.cache
    def expected():
        return functools.reduce(lambda value, c: value * x + float(c), coefficients, 0 * x.astype("float64"))

    def launch_over(name, element, grid, *args):
        kernel = cuda_kernel(SOURCE, name, name_expression=f"{name}<{element}>")
        return kernel.launch(grid=(grid,), block=(256,), args=args)

    def copying(element, warps_per_sm):
        dst, name = gpu.empty(src.size), f"copy of {element}, {warps_per_sm} warps per SM"
        launch = launch_over("copy", element, warps_per_sm // 8 * gpu.sm_count, src, dst, src.size)
        return gpuperf(launch, name=name, bytes=2 * src.nbytes, check=lambda: gpu.assert_equal(dst, src))

    def evaluating(element, space):
        out, flops = gpu.empty(x.size), 2 * coefficients.size * x.size
        launch = launch_over(f"horner_from_{space}", element, x.size // 256, x, staged, out, x.size)
        check = functools.partial(gpu.assert_allclose, out, rtol=1e-4, atol=1e-4)
        return gpuperf(launch, flops=flops, cache="warm", check=lambda: check(expected()))

    scalar, wide, *_ = (evaluating(one, space) for space in ("shared", "global") for one in ("float", "float4"))
    _, pairs, quads = (copying(element, 64) for element in ("float", "float2", "float4"))
    few, few_quads = (copying(element, 8) for element in ("float", "float4"))

    assert wide.time_ns < scalar.time_ns
    assert few_quads.time_ns < few.time_ns
    # With as many bytes on their way as the memory needs, there is nothing left to gain.
    assert pairs.time_ns < 1.1 * quads.time_ns
