"""Loading the next value before computing with the current one.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest

SOURCE = "kernels/register_pipelining.cu"
NAMES = ("plain", "prefetch_1", "prefetch_4", "async_tiles")
BLOCK = 128
BLOCKS_OF_A_FULL_SM = 16
CHAIN = 64


def launch_over(kernel, given, out):
    """``given`` has a row per step."""
    return kernel.launch(grid=(out.size // BLOCK,), block=(BLOCK,), args=(given, out, given.shape[0]))


def doubled_sums(given):
    """What the threads end with, in float64; for NumPy and CuPy arrays."""
    return 2 * given.sum(axis=0, dtype="float64")


@pytest.mark.parametrize("steps", [4, 8, 64])
def test_sums_are_right(cuda_kernel, gpu, steps):
    kernels = {name: cuda_kernel(SOURCE, name) for name in NAMES}
    given = np.random.default_rng(80).uniform(0.5, 1.5, (steps, 3 * BLOCK)).astype(np.float32)
    for name, kernel in kernels.items():
        out = gpu.zeros(3 * BLOCK)
        launch_over(kernel, gpu.array(given), out)()
        np.testing.assert_allclose(gpu.to_host(out), doubled_sums(given), rtol=1e-5, err_msg=name)


@pytest.mark.gpuperf(budget_s=0.6)
def test_computing_while_loading(cuda_kernel, gpu, gpuperf, claim):
    """The full SM is the control: there other warps hide most of the wait, and loading ahead gains little."""
    kernels = {name: cuda_kernel(SOURCE, name) for name in NAMES}
    for name, kernel in kernels.items():
        for profile in kernel.profiles.values():
            assert profile.shared_bytes == (2 * 4 * BLOCK * 4 if name == "async_tiles" else 0)
            assert profile.stack_bytes == 0
    for name in ("plain", "prefetch_1"):
        assert max(profile.registers for profile in kernels[name].profiles.values()) <= 32  # 16 blocks fit an SM

    rows, threads = 2048, gpu.sm_count * BLOCK
    lonely = gpu.random((rows, threads), seed=81, low=0.5, high=1.5)
    crowded = lonely.reshape(rows // BLOCKS_OF_A_FULL_SM, threads * BLOCKS_OF_A_FULL_SM)

    @functools.cache
    def expected(steps):
        return doubled_sums(lonely if steps == rows else crowded)

    def measure(name, given, where):
        out = gpu.zeros(given.shape[1])
        return gpuperf(
            launch_over(kernels[name], given, out),
            name=f"{name}, {where}",
            bytes=given.nbytes,
            flops=2 * CHAIN * given.size,
            check=lambda: gpu.assert_allclose(out, expected(given.shape[0]), rtol=2e-5),
        )

    alone = {name: measure(name, lonely, "4 warps per SM") for name in NAMES}
    full = {name: measure(name, crowded, "64 warps per SM") for name in ("plain", "prefetch_1")}
    assert_what_counters_say(alone, claim)
    time = {name: run.time_ns for name, run in alone.items()}

    claim("RP-01", time["plain"] / time["prefetch_1"])
    claim(
        "RP-03",
        full["plain"].time_ns / full["prefetch_1"].time_ns,
        because=[lambda: counters.dram_throughput(full["plain"])],
    )
    assert time["prefetch_4"] <= 0.9 * time["prefetch_1"]
    assert time["async_tiles"] <= 0.9 * time["prefetch_1"]


def assert_what_counters_say(runs, claim):
    plain = runs["plain"]

    def share_of_long_scoreboard():
        """Of all waiting for a scoreboard."""
        waits = {name: counters.stall(plain, f"{name}_scoreboard") for name in ("long", "short")}
        return waits["long"] / sum(waits.values())

    def waiting_of(name):
        """For memory, against the plain loop: cycles per instruction."""
        return counters.stall(runs[name], "long_scoreboard") / counters.stall(plain, "long_scoreboard")

    claim("RP-02", lambda: waiting_of("prefetch_1"))
    claim("RP-06", lambda: waiting_of("prefetch_4"))
    claim("RP-04", share_of_long_scoreboard)
