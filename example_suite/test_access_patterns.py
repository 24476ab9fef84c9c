"""What a load moves, and what of it is used.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

from typing import NamedTuple

import counters
import numpy as np
import pytest

SOURCE = "kernels/access_patterns.cu"
BLOCK = 256
WARP = 32
LOADS = 32
"""Of a thread."""
MAX_L2_FETCH_GRANULARITY = 5
"""``cudaLimitMaxL2FetchGranularity``"""


class Pattern(NamedTuple):
    """Where the lanes of a warp read, in floats."""

    stride: int
    shift: int
    pitch: int
    """From one load of a warp to its next."""


PATTERNS = {"aligned": Pattern(1, 0, 32), "unaligned": Pattern(1, 4, 64), "worst": Pattern(8, 0, 256)}


def compile_all(cuda_kernel):
    return {
        name: cuda_kernel(SOURCE, "sum_loads", name_expression="sum_loads<{}, {}, {}>".format(*pattern))
        for name, pattern in PATTERNS.items()
    }


def launch_over(kernel, out, values):
    return kernel.launch(grid=(out.size // BLOCK,), block=(BLOCK,), args=(out, values))


def read_by(pattern, values):
    """What the lanes read, by warp, load and lane; for NumPy and CuPy arrays."""
    end = pattern.shift + WARP * pattern.stride
    loads = values.reshape(-1, LOADS, pattern.pitch)
    return loads[:, :, pattern.shift : end : pattern.stride]


def test_every_lane_reads_its_own(cuda_kernel, gpu):
    warps = 5 * BLOCK // WARP
    rng = np.random.default_rng(380)
    for name, kernel in compile_all(cuda_kernel).items():
        values = rng.random(warps * LOADS * PATTERNS[name].pitch, dtype=np.float32)
        out = gpu.zeros(warps * WARP)
        launch_over(kernel, out, gpu.array(values))()
        expected = read_by(PATTERNS[name], values).sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(gpu.to_host(out), expected.ravel(), rtol=1e-5, err_msg=name)


def test_what_the_l2_fetches(gpu, claim):
    if not gpu.available:
        pytest.skip("asks the driver")
    import cupy

    fetched = cupy.cuda.runtime.deviceGetLimit(MAX_L2_FETCH_GRANULARITY)
    claim("HW-06", fetched / 32, between=(1, 4))  # in sectors: at least one, at most a line
    claim("ACC-06", fetched, equals=64)


@pytest.mark.gpuperf(budget_s=0.6)
def test_reading_in_patterns(cuda_kernel, gpu, gpuperf, claim):
    kernels = compile_all(cuda_kernel)
    for kernel in kernels.values():
        for profile in kernel.profiles.values():
            assert profile.opcodes["global_load"] == LOADS
            assert profile.registers <= 48

    useful = 2**26
    warps = useful // (WARP * LOADS)
    values = gpu.random(warps * LOADS * max(pattern.pitch for pattern in PATTERNS.values()), seed=381)

    def measure(name):
        pattern = PATTERNS[name]
        out = gpu.empty(warps * WARP)

        def check():
            expected = read_by(pattern, values[: warps * LOADS * pattern.pitch]).sum(axis=1, dtype="float64")
            gpu.assert_allclose(out, expected.ravel(), rtol=1e-5)

        launch = launch_over(kernels[name], out, values)
        return gpuperf(launch, name=name, bytes=4 * useful + out.nbytes, check=check)

    aligned, unaligned, worst = (measure(name) for name in PATTERNS)

    def sectors_of(run, lines, share_used):
        """Of a load that touches so many lines and uses such a share of what it moves."""
        assert counters.bytes_used_per_sector(run) == pytest.approx(32 * share_used)
        assert counters.l2_requests(run, "ld") / counters.requests(run, "ld") == pytest.approx(lines, rel=0.01)
        assert counters.l2_sectors(run, "ld") == pytest.approx(counters.sectors(run, "ld"), rel=0.01)
        return counters.sectors_per_request(run, "ld")

    claim.counter("ACC-01", lambda: sectors_of(aligned, lines=1, share_used=1), equals=4)
    claim.counter("ACC-02", lambda: sectors_of(unaligned, lines=2, share_used=0.8), equals=5)
    claim.counter("ACC-03", lambda: sectors_of(worst, lines=8, share_used=0.125), equals=32)
    assert aligned.bandwidth >= 0.75 * gpu.copy_bandwidth
    claim("ACC-05", worst.bandwidth / gpu.copy_bandwidth, equals=0.125, tol=0.0125)
    claim("ACC-04", worst.time_ns / aligned.time_ns, between=(6, 8))
    # Five sectors for four; and six where the L2 fetches them in pairs.
    assert 1.1 <= unaligned.time_ns / aligned.time_ns <= 2.1
