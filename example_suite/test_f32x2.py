"""Two multiply-adds in one instruction: f32x2, by the machine code alone.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

from pathlib import Path

import numpy as np
import pytest
import sass_counts
from launching import blocks_over

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource

SOURCE = "kernels/f32x2.cu"
BLOCK = 128
STEPS = 64
NAMES = ("steps_one_by_one", "steps_of_two")
ARCHITECTURES = ("sm_90", "sm_100", "sm_120")


def compiled(name):
    """For architectures that baselines are kept of, and for one that they are not."""
    path = Path(__file__).parent / SOURCE
    source = KernelSource(text=path.read_text(encoding="utf-8"), name=name, path=path)
    return compile_for(source, ARCHITECTURES, CompileCache())


def multiply_adds(binary):
    """FFMA and FFMA2."""
    return sass_counts.count(binary, "FFMA"), sass_counts.count(binary, "FFMA2")


@pytest.mark.parametrize("name", NAMES)
def test_values_are_right(cuda_kernel, gpu, name):
    """Where the GPU has the instruction, and where it does not."""
    pairs, a, b = 1003, np.float32(-0.875), np.float32(0.5)
    x = gpu.random((pairs, 2), seed=410, low=-1, high=1)
    y = gpu.empty((pairs, 2))
    kernel = cuda_kernel(SOURCE, name)
    kernel.launch(grid=(blocks_over(pairs, BLOCK),), block=(BLOCK,), args=(y, x, a, b, pairs))()
    expected = gpu.to_host(x).astype(np.float64)
    for _ in range(STEPS):
        expected = expected * float(a) + float(b)
    np.testing.assert_allclose(gpu.to_host(y), expected, rtol=1e-5)


def test_half_as_many_instructions(claim):
    one_by_one, of_two = (compiled(name) for name in NAMES)
    for arch in ARCHITECTURES:  # the compiler packs nothing by itself
        assert multiply_adds(one_by_one[arch]) == (2 * STEPS, 0)
    assert multiply_adds(of_two["sm_90"]) == (2 * STEPS, 0)

    def saved(arch):
        return sum(multiply_adds(one_by_one[arch])) / sum(multiply_adds(of_two[arch]))

    claim("F2-01", saved("sm_100"), because=[multiply_adds(of_two["sm_100"])[1]])
    claim("F2-02", saved("sm_120"), because=[multiply_adds(of_two["sm_120"])[1]])
