"""How many threads to a block, and what an SM can hold.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/occupancy_block_size.cu"
BLOCKS_ON_HOPPER = {32: (32, 32, 0.50), 64: (32, 64, 1.00), 768: (2, 48, 0.75), 1024: (2, 64, 1.00)}
"""Block size: resident blocks, resident warps, occupancy."""
LIFE_S = 1.2e-6
"""What a thread lives at most that is launched, loads once, stores once and leaves; 1.04 us on an H200."""


def launch_over(kernel, block, src, dst):
    return kernel.launch(grid=(blocks_over(src.size, block),), block=(block,), args=(src, dst, src.size))


def test_every_element_is_copied(cuda_kernel, gpu):
    kernel = cuda_kernel(SOURCE, "copy_elements")
    src = gpu.random(100_003, seed=100)
    for block in (32, 33, 64, 768, 1024):
        dst = gpu.zeros(src.shape)
        launch_over(kernel, block, src, dst)()
        np.testing.assert_array_equal(gpu.to_host(dst), gpu.to_host(src), err_msg=f"block of {block}")


def test_a_block_takes_whole_warps(cuda_kernel, gpu, claim):
    warps = gpu.zeros(3, dtype="int32")
    launch = cuda_kernel(SOURCE, "count_warps").launch(grid=(3,), block=(33,), args=(warps,))
    taken = {found.warps_per_sm / found.blocks_per_sm for found in launch.occupancy.values()}
    claim("OCC-06", max(taken), equals=2)
    launch()
    np.testing.assert_array_equal(gpu.to_host(warps), [2, 2, 2])


def test_what_hopper_holds(gpu, claim):
    if not gpu.available or gpu.compute_capability != (9, 0):
        pytest.skip("needs a Hopper GPU")
    claim("HW-01", gpu.warp_size)
    claim("HW-02", gpu.max_threads_per_sm)
    claim("HW-13", gpu.max_blocks_per_sm)
    claim("HW-14", gpu.max_threads_per_block)
    claim("HW-03", gpu.registers_per_sm)
    claim("HW-04", gpu.shared_bytes_per_sm / 1024)
    assert gpu.shared_bytes_per_block_optin == 227 * 1024


def test_copy_by_block_size(cuda_kernel, gpu, gpuperf, claim):
    kernel = cuda_kernel(SOURCE, "copy_elements")
    src = gpu.random(2**27, seed=101)
    dst = gpu.zeros(src.shape)
    launches = {block: launch_over(kernel, block, src, dst) for block in BLOCKS_ON_HOPPER}
    if "sm_90" in kernel.profiles:
        found = {block: launch.occupancy["sm_90"] for block, launch in launches.items()}
        for block, (blocks, warps, _) in BLOCKS_ON_HOPPER.items():
            assert (found[block].blocks_per_sm, found[block].warps_per_sm) == (blocks, warps)
        claim("OCC-01", found[32].fraction, equals=0.50)
        claim("OCC-02", found[64].fraction, equals=1.00)
        claim("OCC-03", found[768].fraction, equals=0.75)
        claim("OCC-04", found[1024].fraction, equals=1.00)

    def check():
        gpu.assert_equal(dst, src)
        dst.fill(0)  # what the next block size does not copy is seen

    times = {
        block: gpuperf(launch, name=f"block of {block}", bytes=2 * src.nbytes, check=check)
        for block, launch in launches.items()
    }

    def missing_warps():
        """Percent of all that an SM could hold: the most and the fewest of the block sizes."""
        return [counters.theoretical_occupancy(run) - counters.achieved_occupancy(run) for run in times.values()]

    claim.counter_refuted(
        "OCC-05",
        lambda: max(missing_warps()),
        holds=lambda percent: percent <= 15 and min(missing_warps()) >= 0,
        reason="a thread lives 0.6 us here, and its place stays empty until a block follows: an H200 launches 1.66 "
        "blocks per nanosecond, which with 64 threads fill a quarter of the places, and a block of 1024 follows only "
        "when all 32 warps of another have left",
    )

    # Little's law: 4 bytes are on their way to every resident thread, and then away from it.  On an H200 that makes
    # half of what a copy reaches with 64 bytes per thread under way.
    in_flight = 8 * gpu.sm_count * gpu.max_threads_per_sm
    assert times[1024].bandwidth >= min(0.8 * gpu.copy_bandwidth, in_flight / LIFE_S)
    assert times[1024].time_ns < times[768].time_ns  # three quarters of the threads, three quarters in flight
    # Below that, blocks cannot be launched fast enough: 1.66 per nanosecond on an H200, whether of 32 threads or of 64.
    claim("OCC-07", times[32].time_ns / times[64].time_ns, at_least=1.0)
