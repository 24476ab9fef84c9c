"""Rare long work: done where it is found, gathered in a queue, or left to a second kernel.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/scout_and_dive.cu"
UNIT = 2**24
SHARES = {"1 in 256": UNIT // 256, "1 in 16": UNIT // 16, "1 in 4": UNIT // 4, "all": UNIT}
"""Of items to dive for, in multiples of 1/UNIT."""


def dived(items, share):
    """The limit of the chain for items that need a dive, zero for others; exact in float32."""
    hashes = (items ^ items >> 16) * 0x7FEB352D
    hashes = (hashes ^ hashes >> 15) * 0x846CA68B
    hashes = hashes ^ hashes >> 16
    return ((hashes & 0xFFFF) + 1).astype("float32") / 32768 * (hashes >> 8 < share)


def test_queue_always_has_room(cuda_kernel, gpu, record_property):
    kernel, racing = (cuda_kernel(SOURCE, name) for name in ("dive_from_queue", "dive_from_queue_racing"))
    for arch, profile in kernel.profiles.items():
        assert profile.opcodes["barrier"] == racing.profiles[arch].opcodes["barrier"] + 1
    longest = gpu.zeros(1, dtype="int32")
    for n, blocks in ((100_003, 7), (100, 3), (64, 1), (1, 2)):  # the last three leave threads without an item
        for share in SHARES.values():
            out = gpu.zeros(n)
            kernel.launch(grid=(blocks,), block=(64,), args=(out, longest, n, share, 100))()
            gpu.assert_equal(gpu.to_host(out), dived(np.arange(n, dtype=np.uint32), share))
    record_property("longest queue", int(gpu.to_host(longest)[0]))


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_diving_for_a_share_of_items(cuda_kernel, gpu, gpuperf):
    n, steps, blocks = 2**24, 1024, 32 * gpu.sm_count
    items = gpu.array(np.arange(n, dtype=np.uint32))
    longest, length = gpu.zeros(1, dtype="int32"), gpu.zeros(1, dtype="int32")

    def launch(kernel, blocks, block, *args):
        return cuda_kernel(SOURCE, kernel).launch(grid=(blocks,), block=(block,), args=args)

    def measure(how, share, kernel=None):
        out, reset = gpu.zeros(n), None
        if kernel is None:
            found, reset = gpu.zeros(n, dtype="int32"), lambda: length.fill(0)
            collect = launch("collect", n // (256 * 32), 256, found, length, n, SHARES[share])
            dive = launch("dive_collected", blocks, 64, found, length, out, steps)
        return gpuperf(
            launch(kernel, blocks, 64, out, longest, n, SHARES[share], steps)
            if kernel
            else lambda: (collect(), dive()),
            name=f"{how}, {share}",
            flops=2 * steps * n * SHARES[share] // UNIT,
            reset=reset,
            check=lambda: gpu.assert_equal(out, dived(items, SHARES[share])),
        )

    alone = {share: measure("at once", share, "dive_at_once") for share in SHARES}
    queued = {share: measure("from queue", share, "dive_from_queue") for share in SHARES}
    two = measure("two kernels", "1 in 16")
    assert all(queued[share].time_ns < alone[share].time_ns for share in ("1 in 256", "1 in 16", "1 in 4"))
    assert two.time_ns < alone["1 in 16"].time_ns
