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
WORDS = 8
"""Of a sector."""


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


def read_whole_sectors(values):
    """What the lanes of the control read, by warp, load and lane; for NumPy and CuPy arrays."""
    parts = values.reshape(-1, LOADS // WORDS, WARP, WORDS)
    return parts.swapaxes(2, 3).reshape(-1, LOADS, WARP)


def test_every_lane_reads_its_own(cuda_kernel, gpu):
    warps = 5 * BLOCK // WARP
    rng = np.random.default_rng(380)
    kernels, whole_sectors = compile_all(cuda_kernel), cuda_kernel(SOURCE, "sum_whole_sectors")
    for name, kernel in kernels.items():
        values = rng.random(warps * LOADS * PATTERNS[name].pitch, dtype=np.float32)
        out = gpu.zeros(warps * WARP)
        launch_over(kernel, out, gpu.array(values))()
        expected = read_by(PATTERNS[name], values).sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(gpu.to_host(out), expected.ravel(), rtol=1e-5, err_msg=name)
    values = rng.random(warps * LOADS * WARP, dtype=np.float32)
    out = gpu.zeros(warps * WARP)
    launch_over(whole_sectors, out, gpu.array(values))()
    expected = read_whole_sectors(values).sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(gpu.to_host(out), expected.ravel(), rtol=1e-5, err_msg="whole sectors")


@pytest.mark.gpuperf(budget_s=0.6)
def test_reading_in_patterns(cuda_kernel, gpu, gpuperf, claim):
    kernels = compile_all(cuda_kernel)
    whole_sectors = cuda_kernel(SOURCE, "sum_whole_sectors")
    for kernel in (*kernels.values(), whole_sectors):
        for profile in kernel.profiles.values():
            assert profile.opcodes["global_load"] == LOADS
            assert profile.registers <= 48

    useful = 2**26
    warps = useful // (WARP * LOADS)
    values = gpu.random(warps * LOADS * max(pattern.pitch for pattern in PATTERNS.values()), seed=381)

    def measure(name, kernel, read):
        out = gpu.empty(warps * WARP)

        def check():
            expected = read(values).sum(axis=1, dtype="float64")
            gpu.assert_allclose(out, expected.ravel(), rtol=1e-5)

        return gpuperf(launch_over(kernel, out, values), name=name, bytes=4 * useful + out.nbytes, check=check)

    def measure_pattern(name):
        pattern = PATTERNS[name]
        return measure(name, kernels[name], lambda all_: read_by(pattern, all_[: warps * LOADS * pattern.pitch]))

    aligned, unaligned, worst = (measure_pattern(name) for name in PATTERNS)
    whole = measure("whole sectors", whole_sectors, lambda all_: read_whole_sectors(all_[:useful]))

    assert_what_is_moved(aligned, unaligned, worst, claim)
    assert aligned.bandwidth >= 0.75 * gpu.copy_bandwidth
    claim("ACC-04", worst.time_ns / aligned.time_ns)
    # Five sectors for four; and six where the L2 fetches them in pairs.
    assert 1.1 <= unaligned.time_ns / aligned.time_ns <= 2.1
    # The control: requests as bad as the worst, but all of each sector is used.  Then they cost a fraction.
    assert whole.time_ns <= 0.5 * worst.time_ns


def assert_what_is_moved(aligned, unaligned, worst, claim):
    def share_used(run):
        return lambda: counters.bytes_used_per_sector(run) / 32

    def l2_requests(run):
        return lambda: counters.l2_requests(run, "ld") / counters.requests(run, "ld")

    def sectors_per_line(run):
        assert counters.l2_sectors(run, "ld") == pytest.approx(counters.sectors(run, "ld"), rel=0.01)
        return counters.l2_sectors(run, "ld") / counters.l2_requests(run, "ld")

    def from_dram(run):
        """Bytes per request."""
        return counters.bytes_read_from_dram(run) / counters.requests(run, "ld")

    claim("ACC-01", lambda: counters.sectors_per_request(aligned, "ld"))
    claim("ACC-02", lambda: counters.sectors_per_request(unaligned, "ld"))
    claim("ACC-03", lambda: counters.sectors_per_request(worst, "ld"))
    claim("ACC-07", l2_requests(unaligned))
    claim("ACC-08", l2_requests(worst))
    claim("ACC-10", share_used(aligned))
    claim("ACC-09", share_used(unaligned))
    claim("ACC-05", share_used(worst))
    claim("ACC-06", lambda: from_dram(unaligned) - from_dram(aligned))
    claim("HW-06", lambda: counters.bytes_asked_for(aligned) / counters.sectors(aligned, "ld"))
    claim("HW-23", lambda: sectors_per_line(worst))
