"""Tensor cores: a warp multiplies small matrices that are spread over its registers.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the "Optimization" chapter
of a CUDA course.
"""

from pathlib import Path

import counters
import numpy as np
import pytest

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource

SOURCE = "kernels/hmma_1688.cu"
ROWS, COLUMNS = 16, 8
"""Of a tile of results."""
DEPTH = 8
"""Products that one HMMA.1688 adds up."""
ACCUMULATORS = 8
"""Tiles of a warp that is kept busy."""
SINCE_TURING = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
TENSOR_PEAK = 989e12
"""FLOP per second of an H200 with dense half-precision inputs, by its data sheet."""


def repeating(cuda_kernel, depth):
    return cuda_kernel(SOURCE, "repeat_mma", name_expression=f"repeat_mma<{depth}>")


def whole_numbers(shape, seed, below=3):
    """From 1 - below to below - 1, in half precision: sums of their products are exact."""
    return np.random.default_rng(seed).integers(1 - below, below, shape).astype(np.float16)


def in_pairs(gpu, halves):
    """On the device, as the 32-bit registers that a kernel loads."""
    return gpu.array(halves).view("uint32")


def product(a, b_by_columns):
    """In float64; b[column][row], as the kernels have it."""
    return a.astype(np.float64) @ b_by_columns.astype(np.float64).T


def test_a_tile_is_right(cuda_kernel, gpu, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in ("tile_mma", "tile_scalar")}
    profiles = kernels["tile_mma"].profiles
    instructions = {arch: profile.opcodes.get("tensor", 0) for arch, profile in profiles.items()}
    claim("MMA-01", ROWS * COLUMNS * DEPTH / max(instructions.values()))
    assert {(profile.shared_bytes, profile.stack_bytes) for profile in profiles.values()} == {(0, 0)}

    a, b = whole_numbers((ROWS, DEPTH), seed=200, below=9), whole_numbers((COLUMNS, DEPTH), seed=201, below=9)
    start = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    expected = start + product(a, b)
    lanes, d = gpu.empty((ROWS, COLUMNS)), gpu.array(start)
    kernels["tile_mma"].launch(grid=1, block=32, args=(in_pairs(gpu, a), in_pairs(gpu, b), d, lanes))()
    np.testing.assert_array_equal(gpu.to_host(d), expected)
    d = gpu.array(start)
    kernels["tile_scalar"].launch(grid=1, block=32, args=(gpu.array(a), gpu.array(b), d))()
    np.testing.assert_array_equal(gpu.to_host(d), expected)

    # Four results in the registers of every lane of the warp.
    held = np.bincount(gpu.to_host(lanes).astype(int).ravel(), minlength=32)
    claim("MMA-04", np.count_nonzero(held == ROWS * COLUMNS // 32))


def test_one_source_for_all_since_turing(claim):
    """Compiled outside of the plugin: nobody keeps baselines of all these architectures."""
    file = Path(__file__).with_name("kernels") / "hmma_1688.cu"
    tiles = compile_for(KernelSource(file.read_text(encoding="utf-8"), "tile_mma", file), SINCE_TURING, CompileCache())
    claim("MMA-05", sum(tile.profile.opcodes.get("tensor", 0) == 1 for tile in tiles.values()))


def test_a_tile_of_fractions_is_right(cuda_kernel, gpu):
    a, b = (gpu.random((rows, DEPTH), "float16", seed=186 + rows, low=-1, high=1) for rows in (ROWS, COLUMNS))
    lanes, d = gpu.empty((ROWS, COLUMNS)), gpu.zeros((ROWS, COLUMNS))
    cuda_kernel(SOURCE, "tile_mma").launch(grid=1, block=32, args=(a, b, d, lanes))()
    np.testing.assert_allclose(gpu.to_host(d), product(gpu.to_host(a), gpu.to_host(b)), rtol=0, atol=1e-5)


def test_product_is_right(cuda_kernel, gpu):
    n = 384
    a, b = (gpu.random((n, n), "float16", seed=seed, low=-1, high=1) for seed in (203, 204))
    c = gpu.empty((n, n))
    cuda_kernel(SOURCE, "matmul_mma").launch(grid=(n // 128, n // 128), block=256, args=(a, b, c, n))()
    np.testing.assert_allclose(gpu.to_host(c), product(gpu.to_host(a), gpu.to_host(b)), rtol=0, atol=1e-3)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_rate_of_tensor_cores(cuda_kernel, gpu, gpuperf, claim):
    rounds, warps = 4096, 16 * gpu.sm_count

    def measure(depth):
        a, b = whole_numbers((ROWS, depth), seed=205), whole_numbers((COLUMNS, depth), seed=206)
        d = gpu.empty((warps * ACCUMULATORS, ROWS, COLUMNS))
        args = (in_pairs(gpu, a), in_pairs(gpu, b), d, rounds)

        def check():
            expected = np.broadcast_to(rounds * product(a, b), d.shape)
            np.testing.assert_array_equal(gpu.to_host(d), expected)

        return gpuperf(
            repeating(cuda_kernel, depth).launch(grid=gpu.sm_count, block=512, args=args),
            flops=2 * ROWS * COLUMNS * depth * rounds * warps * ACCUMULATORS,
            check=check,
        )

    of_8, of_16 = measure(8), measure(16)
    multiply_adds = warps * ACCUMULATORS * rounds * ROWS * COLUMNS * DEPTH
    claim("MMA-02", lambda: multiply_adds / counters.tensor_instructions(of_8))
    claim("MMA-06", of_8.flops / TENSOR_PEAK)
    if gpu.slug == "nvidia-h200":
        assert of_8.flops < 1.05 * of_16.flops


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_product_by_tensor_cores(cuda_kernel, gpu, gpuperf, claim):
    tiled, tensor = cuda_kernel("kernels/matmul.cu", "matmul_tiled32"), cuda_kernel(SOURCE, "matmul_mma")
    assert {profile.spill_store_bytes for profile in tensor.profiles.values()} == {0}

    def measure(n, of=""):
        a, b_by_columns = (gpu.random((n, n), "float16", seed=seed, low=-1, high=1) for seed in (207, 208))
        singles = a.astype("float32"), b_by_columns.astype("float32").T.copy()
        by_fma, by_mma = gpu.empty((n, n)), gpu.empty((n, n))

        def check():
            gpu.assert_allclose(by_mma, by_fma, rtol=0, atol=5e-3)

        by_ordinary = tiled.launch(grid=(n // 32, n // 32), block=(32, 32), args=(*singles, by_fma, n))
        by_tensor = tensor.launch(grid=(n // 128, n // 128), block=256, args=(a, b_by_columns, by_mma, n))
        return (
            gpuperf(by_ordinary, name=f"matmul_tiled32{of}", flops=2 * n**3),
            gpuperf(by_tensor, name=f"matmul_mma{of}", flops=2 * n**3, check=check),
        )

    ordinary, fast = measure(2048)
    # The control: a product of one block has no work for the tensor cores of the others.
    small_ordinary, small_fast = measure(128, ", 128 rows")
    claim("MMA-03", ordinary.time_ns / fast.time_ns, because=[ordinary.flops / gpu.fma_throughput])
    if gpu.slug == "nvidia-h200":
        assert small_ordinary.time_ns < 4 * small_fast.time_ns
