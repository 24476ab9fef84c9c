"""Barriers in branches, and after half of a block has left.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import counters
import numpy as np
import ptx_counts
import pytest
import synccheck
from claims import NotLookedAt

SOURCE = "kernels/barriers.cu"
NAMES = ("converged", "group_sync", "sync_after_exit")
"""Those that may be launched."""
BLOCK = (32, 2, 2)
HALF = 64
BARRIERS = {
    "converged": {"bar.sync": 1},
    "sync_divergent": {"bar.sync": 2},
    "group_sync": {"barrier.sync": 2},
    "sync_after_exit": {"bar.sync": 1},
}
"""In PTX."""


def launch_over(kernel, given, out):
    return kernel.launch(grid=(given.size // (2 * HALF),), block=BLOCK, args=(given, out))


def exchanged(name, given):
    """What each half reads of the other, or of its neighbours, as (lower half, upper half) of all blocks."""
    lower, upper = given.reshape(-1, 2, HALF).astype("float64").swapaxes(0, 1)
    if name == "sync_after_exit":
        neighbours = 0 * lower
        neighbours[:, :-1], neighbours[:, -1] = lower[:, 1:], lower[:, 0]
        return 2 * neighbours + 1, 0 * upper
    return 3 * upper - 1, 2 * lower + 1


def halves(out):
    return out.reshape(-1, 2, HALF).swapaxes(0, 1)


def right_elements(cuda_kernel, gpu, name):
    """Percent."""
    given = gpu.random(331 * 2 * HALF, seed=90, low=0.5, high=1.5)
    out = gpu.zeros(given.size)
    launch_over(cuda_kernel(SOURCE, name), given, out)()
    found = halves(gpu.to_host(out))
    expected = exchanged(name, gpu.to_host(given))
    pairs = zip(found, expected, strict=True)
    return 100 * np.mean([np.isclose(got, wanted, rtol=1e-6, atol=0).mean() for got, wanted in pairs])


@pytest.mark.parametrize("name", NAMES)
def test_partners_exchange_their_values(cuda_kernel, gpu, name):
    assert right_elements(cuda_kernel, gpu, name) == 100


def test_what_the_talk_says(cuda_kernel, gpu, claim, request, tmp_path):
    for name, barriers in BARRIERS.items():
        kernel = cuda_kernel(SOURCE, name)
        for arch in kernel.profiles:
            counts = ptx_counts.instructions(kernel, arch)
            assert {opcode: n for opcode, n in counts.items() if opcode.startswith("bar")} == barriers
    claim("BAR-01", right_elements(cuda_kernel, gpu, "sync_after_exit"))
    claim("BAR-02", right_elements(cuda_kernel, gpu, "group_sync"))

    def kernels_with_errors():
        if not request.config.getoption("claims_to", None):
            raise NotLookedAt("takes compute-sanitizer: looked at with --claims-to alone")
        array = gpu.zeros(2 * HALF)
        launches = [launch_over(cuda_kernel(SOURCE, name), array, array) for name in ("converged", "sync_divergent")]
        of_converged, of_divergent = (synccheck.errors(launch, tmp_path) for launch in launches)
        assert of_converged == 0
        return int(of_divergent > 0)  # 32 or 64 errors: of one warp's lanes or of both, as it happens

    claim("BAR-03", kernels_with_errors)


@pytest.mark.gpuperf(budget_s=0.5)
def test_exchange_in_many_blocks(cuda_kernel, gpu, gpuperf, claim):
    """The block whose other half has left is the control: with fewer warps to wait for, warps wait less."""
    given = gpu.random(2**25, seed=91, low=0.5, high=1.5)

    def measure(name):
        out = gpu.zeros(given.size)

        def check():
            for found, expected in zip(halves(out), exchanged(name, given), strict=True):
                gpu.assert_allclose(found, expected, rtol=1e-6)

        share = 1 if name == "sync_after_exit" else 2
        launch = launch_over(cuda_kernel(SOURCE, name), given, out)
        return gpuperf(launch, bytes=share * given.nbytes, check=check)

    converged, group, exited = (measure(name) for name in NAMES)

    claim("BAR-05", lambda: counters.stall(exited, "barrier") / counters.stall(converged, "barrier"))
    assert exited.time_ns <= 1.1 * converged.time_ns  # half the traffic, but exited warps keep their places
    assert group.time_ns <= 1.05 * converged.time_ns  # the branch splits no warp
