"""A chain of dependent additions: latency, hidden by more warps or by independent work.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

from typing import NamedTuple

import numpy as np
import pytest

SOURCE = "kernels/kernel_a_latency.cu"


class Variant(NamedTuple):
    kernel: str
    threads: int  # of a block
    blocks: int = 1
    blocks_per_sm: int = 0  # in place of `blocks`, to fill the GPU
    count: int = 100_000  # additions to each sum


VARIANTS = {
    "f64_1warp_rolled": Variant("chain_f64_rolled", 32),
    "f64_1warp": Variant("chain_f64", 32),
    "f32_1warp": Variant("chain_f32", 32),
    "f32_3warps_slide": Variant("chain_f32", 32, blocks=3),
    "f32_3warps": Variant("chain_f32", 384),  # three for each scheduler of an SM
    "f32_ilp2": Variant("chain_f32x2", 32),
    "f64_saturated": Variant("chain_f64", 1024, blocks_per_sm=2),
    "f32_saturated": Variant("chain_f32", 1024, blocks_per_sm=2),
    "f32_ilp2_saturated": Variant("chain_f32x2", 1024, blocks_per_sm=2),
    "f64_16_waves": Variant("chain_f64", 64, blocks_per_sm=16 * 32, count=100_000 // 16),
}


@pytest.mark.gpuperf(budget_s=0.5)
def test_chain_of_additions(cuda_kernel, gpu, gpuperf):
    def measure(name):
        kernel, threads, blocks, blocks_per_sm, count = VARIANTS[name]
        blocks = blocks_per_sm * gpu.sm_count or blocks
        starts, dtype = (0, 1) if kernel == "chain_f32x2" else (0,), "float64" if "f64" in kernel else "float32"
        out = gpu.zeros((blocks * threads, len(starts)), dtype=dtype)

        def check():  # added up one by one, in the kernel's own precision
            terms = np.full((count + 1, len(starts)), 3.14, dtype=dtype)
            terms[0] = starts
            np.testing.assert_array_equal(gpu.to_host(out), np.broadcast_to(np.add.accumulate(terms)[-1], out.shape))

        launch = cuda_kernel(SOURCE, kernel).launch(grid=(blocks,), block=(threads,), args=(out, count))
        return gpuperf(launch, name=name, flops=out.size * count, cache="warm", check=check)

    runs = {name: measure(name) for name in VARIANTS}

    time = {name: run.time_ns for name, run in runs.items()}
    assert time["f32_1warp"] <= 0.7 * time["f64_1warp"]
    assert time["f32_3warps"] <= 1.1 * time["f32_1warp"]  # twelve times the work
    assert time["f32_ilp2"] <= 1.05 * time["f32_1warp"]  # twice the work
    # With the latency hidden by 16 warps, there is nothing left to gain.
    assert time["f32_ilp2_saturated"] >= 1.9 * time["f32_saturated"]
