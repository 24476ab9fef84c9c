"""Launch bounds: the right wish is free, the wrong one is paid in every step of a loop.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/launch_bounds_spills.cu"


def launch_over(cuda_kernel, length, blocks, given, out, steps):
    kernel = cuda_kernel(SOURCE, "flow", name_expression=f"flow<{length}, {blocks}>")
    n = given.shape[1]
    return kernel.launch(grid=-(-n // 256), block=256, args=(given, out, n, steps))


def flowed(length, steps):
    """The matrix of so many steps of a ring, in float64."""
    step = 0.5 * (np.eye(length) + np.roll(np.eye(length), 1, axis=1))
    return np.linalg.matrix_power(step, steps)


@pytest.mark.parametrize("blocks", [1, 5, 6, 8])
def test_rings_are_right(cuda_kernel, gpu, blocks):
    given = np.random.default_rng(710).uniform(0.5, 1.5, (40, 259)).astype(np.float32)
    out = gpu.empty(given.shape)
    launch_over(cuda_kernel, 40, blocks, gpu.array(given), out, 7)()
    np.testing.assert_allclose(gpu.to_host(out), flowed(40, 7) @ given.astype(np.float64), rtol=2e-6)


@pytest.mark.gpuperf(budget_s=0.4)
def test_bounds(cuda_kernel, gpu, gpuperf):
    n, steps = 2**19, 128
    given = gpu.random((40, n), seed=711, low=0.5, high=1.5)

    def measure(blocks, length=40):
        out = gpu.empty((length, n))

        def check():
            gpu.assert_allclose(out, gpu.array(flowed(length, steps)) @ given[:length].astype("float64"), rtol=1e-5)

        launch = launch_over(cuda_kernel, length, blocks, given[:length], out, steps)
        name, flops = f"{length} values, {blocks} blocks", 3 * out.size * steps
        return gpuperf(launch, name=name, bytes=2 * out.nbytes, flops=flops, check=check)

    unlimited, fitting, spilling, most = (measure(blocks) for blocks in (1, 5, 6, 8))
    short_unlimited, short_most = (measure(blocks, length=12) for blocks in (1, 8))
    assert fitting.spill_bytes == short_most.spill_bytes == 0 < spilling.spill_bytes
    assert fitting.time_ns < 1.05 * unlimited.time_ns
    assert fitting.time_ns < spilling.time_ns < most.time_ns
    assert short_most.time_ns < 1.1 * short_unlimited.time_ns  # the boldest wish is free where the values fit
