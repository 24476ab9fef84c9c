"""What a load moves, and what of it is used.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import pytest

SOURCE = "kernels/access_patterns.cu"
WARP, LOADS, SECTOR = 32, 32, 8
"""Lanes, loads of a thread, and floats of a sector."""
PATTERNS = {"aligned": (1, 0, 32), "unaligned": (1, 4, 64), "worst": (8, 0, 256)}
"""Where lanes read, in floats: from one to the next, from the start of a line, from a load to the next."""


def read_in_pattern(values, stride, shift, pitch):
    """The values that lanes read, by warp, load and lane."""
    return values.reshape(-1, LOADS, pitch)[:, :, shift : shift + WARP * stride : stride]


def read_whole_sectors(values):
    return values.reshape(-1, LOADS // SECTOR, WARP, SECTOR).swapaxes(2, 3).reshape(-1, LOADS, WARP)


@pytest.mark.gpuperf(budget_s=0.6)
def test_reading_in_patterns(cuda_kernel, gpu, gpuperf):
    useful = 2**26
    threads = useful // LOADS
    values = gpu.random(threads * 256, seed=381)

    def measure(name, kernel, read):
        out = gpu.empty(threads)

        def check():
            gpu.assert_allclose(out, read().sum(axis=1, dtype="float64").ravel(), rtol=1e-5)

        launch = kernel.launch(grid=(threads // 256,), block=(256,), args=(out, values))
        return gpuperf(launch, name=name, bytes=4 * useful + out.nbytes, check=check)

    def measure_pattern(name):
        stride, shift, pitch = PATTERNS[name]
        kernel = cuda_kernel(SOURCE, "sum_loads", name_expression=f"sum_loads<{stride}, {shift}, {pitch}>")
        return measure(name, kernel, lambda: read_in_pattern(values[: threads * pitch], stride, shift, pitch))

    aligned, unaligned, worst = (measure_pattern(name) for name in PATTERNS)
    whole_sectors = cuda_kernel(SOURCE, "sum_whole_sectors")
    whole = measure("whole sectors", whole_sectors, lambda: read_whole_sectors(values[:useful]))

    assert aligned.time_ns < unaligned.time_ns < worst.time_ns
    # Requests as bad as the worst, but all of each sector is used.
    assert whole.time_ns <= 0.5 * worst.time_ns
