"""How many threads to a block, and what an SM can hold.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/occupancy_block_size.cu"
BLOCKS_ON_HOPPER = {32: (32, 32, 0.50), 64: (32, 64, 1.00), 768: (2, 48, 0.75), 1024: (2, 64, 1.00)}
"""Block size: resident blocks, resident warps, occupancy."""
BLOCK_SLOTS = 32
"""Of an SM."""
LIFE_S = 1.2e-6
"""What a thread lives at most that is launched, loads once, stores once and leaves; 1.04 us on an H200."""


def launch_over(kernel, block, src, dst):
    return kernel.launch(grid=(blocks_over(src.size, block),), block=(block,), args=(src, dst, src.size))


def launch_to_stay(kernel, block, sms, src, dst):
    """As many blocks as an SM has slots for, so that none is launched later."""
    return kernel.launch(grid=(BLOCK_SLOTS * sms,), block=(block,), args=(src, dst, src.size))


def test_every_element_is_copied(cuda_kernel, gpu):
    once, in_rounds = cuda_kernel(SOURCE, "copy_elements"), cuda_kernel(SOURCE, "copy_in_rounds")
    src = gpu.random(100_003, seed=100)
    launches = [functools.partial(launch_over, once, block, src) for block in (32, 33, 64, 768, 1024)]
    launches += [functools.partial(launch_to_stay, in_rounds, block, sms, src) for block, sms in ((32, 1), (64, 7))]
    for launch in launches:
        dst = gpu.zeros(src.shape)
        launch(dst)()
        np.testing.assert_array_equal(gpu.to_host(dst), gpu.to_host(src), err_msg=str(launch))


def test_a_block_takes_whole_warps(cuda_kernel, gpu, claim):
    warps = gpu.zeros(3, dtype="int32")
    launch = cuda_kernel(SOURCE, "count_warps").launch(grid=(3,), block=(33,), args=(warps,))
    taken = {found.warps_per_sm / found.blocks_per_sm for found in launch.occupancy.values()}
    claim("OCC-06", max(taken))
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
    """Small blocks are slow because so many have to be launched: blocks that stay are as fast at half the occupancy."""
    kernel, in_rounds = cuda_kernel(SOURCE, "copy_elements"), cuda_kernel(SOURCE, "copy_in_rounds")
    for profile in in_rounds.profiles.values():
        assert (profile.registers, profile.spill_load_bytes) == (
            32,
            0,
        )  # only the slots limit what is resident, as with the other kernel
    src = gpu.random(2**27, seed=101)
    dst = gpu.zeros(src.shape)
    launches = {block: launch_over(kernel, block, src, dst) for block in BLOCKS_ON_HOPPER}
    if "sm_90" in kernel.profiles:
        found = {block: launch.occupancy["sm_90"] for block, launch in launches.items()}
        for block, (blocks, warps, _) in BLOCKS_ON_HOPPER.items():
            assert (found[block].blocks_per_sm, found[block].warps_per_sm) == (blocks, warps)
        claim("OCC-01", 100 * found[32].fraction)
        claim("OCC-02", 100 * found[64].fraction)
        claim("OCC-03", 100 * found[768].fraction)
        claim("OCC-04", 100 * found[1024].fraction)

    def check():
        gpu.assert_equal(dst, src)
        dst.fill(0)  # what the next block size does not copy is seen

    def measure(launch, name):
        return gpuperf(launch, name=name, bytes=2 * src.nbytes, check=check)

    times = {block: measure(launch, f"block of {block}") for block, launch in launches.items()}
    staying = {
        block: measure(launch_to_stay(in_rounds, block, gpu.sm_count, src, dst), f"block of {block} that stays")
        for block in (32, 64)
    }

    def missing_warps():
        """Percent of all that an SM could hold, with blocks of 64."""
        return counters.theoretical_occupancy(times[64]) - counters.achieved_occupancy(times[64])

    def launched_per_cycle(block):
        return blocks_over(src.size, block) / counters.cycles(times[block])

    claim("OCC-05", missing_warps, because=[lambda: launched_per_cycle(64)])

    # Little's law: 4 bytes are on their way to every resident thread, and then away from it.  On an H200 that makes
    # half of what a copy reaches with 64 bytes per thread under way.
    in_flight = 8 * gpu.sm_count * gpu.max_threads_per_sm
    assert times[1024].bandwidth >= min(0.8 * gpu.copy_bandwidth, in_flight / LIFE_S)
    assert times[1024].time_ns < times[768].time_ns  # three quarters of the threads, three quarters in flight
    claim(
        "OCC-07",
        times[32].time_ns / times[64].time_ns,
        because=[lambda: launched_per_cycle(32) / launched_per_cycle(64)],
    )
    claim("OCC-08", staying[32].time_ns / staying[64].time_ns)
