"""The type of a loop counter: what the compiler may assume about it.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/loop_counter_signedness.cu"
NAMES = ("count_unsigned", "count_signed", "count_by_one<unsigned>")
BLOCK = 256
VALUES = 4
"""Of a thread, updated in turn."""
SCALE, OFFSET = (float(np.float32(value)) for value in (0.999, 0.01))


def launch_over(cuda_kernel, name, given, out, rounds):
    kernel = cuda_kernel(SOURCE, name.split("<")[0], name_expression=name if "<" in name else None)
    return kernel.launch(grid=len(given) // BLOCK, block=BLOCK, args=(given, out, SCALE, OFFSET, rounds))


def at_the_end(x, rounds):
    """In float64: the sums of four geometric series; for NumPy and CuPy arrays of float32."""
    out = x.astype("float64")
    for turn in range(VALUES):
        power = SCALE ** len(range(2 * turn, rounds, 2 * VALUES))
        out[:, turn] = power * out[:, turn] + OFFSET * (1 - power) / (1 - SCALE)
    return out


def test_both_count_alike(cuda_kernel, gpu):
    given = gpu.random((2 * BLOCK, VALUES), seed=160, low=-1, high=1)
    out = gpu.empty_like(given)
    for launch, rounds in [
        (launch_over(cuda_kernel, name, given, out, rounds), rounds) for name in NAMES for rounds in (0, 1, 7, 1001)
    ]:
        launch()
        np.testing.assert_allclose(gpu.to_host(out), at_the_end(gpu.to_host(given), rounds), rtol=1e-5, atol=1e-4)


@pytest.mark.gpuperf(budget_s=0.5, cache="warm")
def test_loop_of_many_rounds(cuda_kernel, gpu, gpuperf):
    rounds, threads = 2**16, 2048 * gpu.sm_count
    given = gpu.random((threads, VALUES), seed=161, low=-1, high=1)

    def measure(name):
        out = gpu.empty_like(given)
        return gpuperf(
            launch_over(cuda_kernel, name, given, out, rounds),
            name=name,
            bytes=2 * given.nbytes,
            flops=threads * rounds,
            check=lambda: gpu.assert_allclose(out, at_the_end(given, rounds), rtol=1e-4),
        )

    by_unsigned, by_signed, by_one = (measure(name) for name in NAMES)
    assert by_one.time_ns < 1.1 * by_signed.time_ns  # cannot step over the end, so that its type is all the same
    if gpu.compute_capability < (10, 0):  # Blackwell's compiler finds the number of rounds by itself
        assert by_unsigned.time_ns > 2 * by_signed.time_ns
