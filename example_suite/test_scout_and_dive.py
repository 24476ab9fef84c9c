"""Rare long work: done where it is found, gathered in a queue, or left to a second kernel.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/scout_and_dive.cu"
BLOCK = 64
BLOCKS_PER_SM = 32
ITEMS_PER_LANE = 32
"""Of the kernel that collects."""
UNIT = 2**24
"""Shares of items to dive for are multiples of 1/UNIT."""
SHARES = {"1 in 256": UNIT // 256, "1 in 16": UNIT // 16, "1 in 4": UNIT // 4, "all": UNIT}


def hash_of(items):
    """As the kernels' hash, on uint32 arrays."""
    items = items ^ items >> 16
    items = items * 0x7FEB352D
    items = items ^ items >> 15
    items = items * 0x846CA68B
    return items ^ items >> 16


def dived(items, share):
    """The limit of the chain for items that need a dive, zero for others; exact in float32."""
    hashes = hash_of(items)
    limits = ((hashes & 0xFFFF) + 1).astype("float32") / 32768
    return limits * (hashes >> 8 < share)


def at_once(out, cuda_kernel, longest, share, steps, blocks):
    args = (out, longest, out.size, share, steps)
    return cuda_kernel(SOURCE, "dive_at_once").launch(grid=(blocks,), block=(BLOCK,), args=args)


def from_queue(out, cuda_kernel, longest, share, steps, blocks):
    args = (out, longest, out.size, share, steps)
    return cuda_kernel(SOURCE, "dive_from_queue").launch(grid=(blocks,), block=(BLOCK,), args=args)


class TwoKernels:
    """One collects the items that need a dive, the other one dives; both run when this is called."""

    def __init__(self, out, cuda_kernel, gpu, share, steps, blocks):
        n = out.size
        items, self.length = gpu.zeros(n, dtype="int32"), gpu.zeros(1, dtype="int32")
        collecting = (blocks_over(n, 256 * ITEMS_PER_LANE),)
        collect, dive = cuda_kernel(SOURCE, "collect"), cuda_kernel(SOURCE, "dive_collected")
        self._launches = (
            collect.launch(grid=collecting, block=(256,), args=(items, self.length, n, share)),
            dive.launch(grid=(blocks,), block=(BLOCK,), args=(items, self.length, out, steps)),
        )

    def reset(self):
        self.length.fill(0)

    def __call__(self):
        for launch in self._launches:
            launch()


def items_up_to(n):
    return np.arange(n, dtype=np.uint32)


@pytest.mark.parametrize("share", SHARES)
def test_dives_reach_their_limit(cuda_kernel, gpu, share):
    n = 100_003  # neither a multiple of the grid nor of the warp
    one, two, three = (gpu.zeros(n) for _ in range(3))
    longest = gpu.zeros(1, dtype="int32")
    launches = (
        at_once(one, cuda_kernel, longest, SHARES[share], 100, 48),
        from_queue(two, cuda_kernel, longest, SHARES[share], 100, 48),
        TwoKernels(three, cuda_kernel, gpu, SHARES[share], 100, 48),
    )
    for launch in launches:
        launch()
    expected = dived(items_up_to(n), SHARES[share])
    for name, out in (("at once", one), ("from queue", two), ("two kernels", three)):
        np.testing.assert_array_equal(gpu.to_host(out), expected, err_msg=name)


def test_queue(cuda_kernel, gpu, claim):
    correct, racing = (cuda_kernel(SOURCE, name).profiles for name in ("dive_from_queue", "dive_from_queue_racing"))
    missing = {correct[arch].opcodes["barrier"] - racing[arch].opcodes["barrier"] for arch in correct}
    assert len(missing) == 1
    claim("SD-06", missing.pop())

    longest = gpu.zeros(1, dtype="int32")
    right = []
    for n, blocks in ((100_003, 7), (100, 3), (64, 1), (1, 2)):  # the last three leave threads without an item
        for share in SHARES.values():
            out = gpu.zeros(n)
            from_queue(out, cuda_kernel, longest, share, 100, blocks)()
            right.append(gpu.to_host(out) == dived(items_up_to(n), share))
    claim("SD-05", 100 * np.concatenate(right).mean())
    claim("SD-01", int(gpu.to_host(longest)[0]))


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_diving_for_a_share_of_items(cuda_kernel, gpu, gpuperf, claim):
    """Work for every item is the control: no lane waits for another one, and the queue has nothing to mend."""
    n, steps = 2**24, 1024
    blocks = BLOCKS_PER_SM * gpu.sm_count
    items = gpu.array(items_up_to(n))

    @functools.cache
    def expected(share):
        return dived(items, share)

    def measure(how, share, make, *more):
        out = gpu.zeros(n)
        workload = make(out, cuda_kernel, *more, SHARES[share], steps, blocks)
        return gpuperf(
            workload,
            name=f"{how}, {share}",
            flops=2 * steps * n * SHARES[share] // UNIT,
            reset=getattr(workload, "reset", None),
            check=lambda: gpu.assert_equal(out, expected(SHARES[share])),
        )

    alone, queued = {}, {}
    for share in SHARES:
        longest = gpu.zeros(1, dtype="int32")
        alone[share] = measure("at once", share, at_once, longest)
        queued[share] = measure("from queue", share, from_queue, longest)
    two = measure("two kernels", "1 in 16", TwoKernels, gpu)

    claim("SD-07", lambda: counters.active_lanes(alone["1 in 16"]))
    claim("SD-04", lambda: counters.active_lanes(queued["1 in 16"]) / counters.active_lanes(alone["1 in 16"]))
    claim("SD-02", alone["1 in 16"].time_ns / queued["1 in 16"].time_ns)
    claim("SD-03", alone["all"].time_ns / queued["all"].time_ns)
    assert two.time_ns <= alone["1 in 16"].time_ns / 3
    assert queued["1 in 256"].time_ns <= alone["1 in 256"].time_ns
