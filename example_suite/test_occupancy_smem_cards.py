"""Shared memory as the limit of occupancy: smaller hands, more players.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

import functools
from typing import NamedTuple

import counters
import numpy as np
import pytest
from rules_of_thumb import on_the_right_sides

from pytest_gpuperf.compile.machine_code.occupancy import occupancy

SOURCE = "kernels/occupancy_smem_cards.cu"
KIB = 1024
BLOCKS_PER_SM = 48
"""Of the grid: a multiple of what is resident, be it 2, 3 or 16 blocks."""


class Hand(NamedTuple):
    """What a block asks for."""

    threads: int
    shared_bytes: int


LARGE_OF_THE_TALK, SMALL_OF_THE_TALK = Hand(128, 70 * KIB), Hand(96, 105 * KIB // 2)
LARGE, SMALL = Hand(128, 98 * KIB), Hand(96, 147 * KIB // 2)
"""The same for an SM with 228 KB to deal."""
BARE = Hand(128, 128 * 4)
"""No more than is used."""


def launch_over(kernel, hand, src, dst, blocks):
    return kernel.launch(
        grid=(blocks,), block=(hand.threads,), args=(src, dst, src.size), shared_bytes=hand.shared_bytes
    )


def in_reversed_tiles(values, width):
    """For NumPy and CuPy arrays of any length."""
    whole = values.size // width * width
    out = values.copy()
    out[:whole] = values[:whole].reshape(-1, width)[:, ::-1].ravel()
    out[whole:] = values[whole:][::-1]
    return out


@pytest.mark.parametrize("hand", [LARGE, SMALL, BARE], ids=["large", "small", "bare"])
def test_tiles_come_out_reversed(cuda_kernel, gpu, hand):
    src = gpu.random(100_003, seed=120)
    dst = gpu.empty_like(src)
    launch_over(cuda_kernel(SOURCE, "reverse_tiles"), hand, src, dst, blocks=37)()
    np.testing.assert_array_equal(gpu.to_host(dst), in_reversed_tiles(gpu.to_host(src), hand.threads))


def test_who_gets_a_hand(cuda_kernel, claim):
    kernel = cuda_kernel(SOURCE, "reverse_tiles")

    def dealt(hand, arch):
        """The occupancy of a GPU that need not be here; this kernel's registers limit it nowhere."""
        return occupancy(kernel.profile, arch, hand.threads, hand.shared_bytes)

    on_a100 = [dealt(hand, "sm_80") for hand in (LARGE_OF_THE_TALK, SMALL_OF_THE_TALK)]
    assert [found.blocks_per_sm for found in on_a100] == [2, 3]
    assert 164 * KIB - 2 * LARGE_OF_THE_TALK.shared_bytes == 24 * KIB
    claim("OCS-01", on_a100[0].warps_per_sm)
    claim("OCS-02", on_a100[1].warps_per_sm)
    claim("OCS-06", 100 * on_a100[0].fraction)

    of_the_talk = [dealt(hand, "sm_90").warps_per_sm for hand in (LARGE_OF_THE_TALK, SMALL_OF_THE_TALK)]
    rescaled = [dealt(hand, "sm_90") for hand in (LARGE, SMALL)]
    assert of_the_talk == [12, 12]
    assert [(found.blocks_per_sm, found.warps_per_sm) for found in rescaled] == [(2, 8), (3, 9)]
    claim("OCS-03", rescaled[1].warps_per_sm - rescaled[0].warps_per_sm)
    assert {found.limiter for found in [*on_a100, *rescaled]} == {"shared memory"}
    without = dealt(LARGE_OF_THE_TALK._replace(shared_bytes=0), "sm_80")
    claim("OCS-04", without.warps_per_sm / on_a100[0].warps_per_sm)


@pytest.mark.gpuperf(budget_s=0.4)
def test_copy_by_size_of_hand(cuda_kernel, gpu, gpuperf, claim):
    """The bare hand is the control: the same kernel and block, with the limit lifted."""
    kernel = cuda_kernel(SOURCE, "reverse_tiles")
    src = gpu.random(2**25, seed=121)
    blocks = BLOCKS_PER_SM * gpu.sm_count

    def measure(name, hand):
        dst = gpu.empty_like(src)
        check = functools.partial(assert_reversed, gpu, dst, src, hand.threads)
        return gpuperf(launch_over(kernel, hand, src, dst, blocks), name=name, bytes=2 * src.nbytes, check=check)

    large, small, bare = (
        measure(f"{hand.threads} threads with {hand.shared_bytes / KIB:g} KB", hand) for hand in (LARGE, SMALL, BARE)
    )

    claim(
        "THR-03",
        lambda: on_the_right_sides(
            counters.achieved_occupancy(bare), counters.achieved_occupancy(large), good_beyond=50, poor_beyond=25
        ),
    )
    # Few warps and a loop of loads and barriers: what is slow is waiting, which more warps (and nothing else) shorten.
    claim("OCS-05", large.time_ns / bare.time_ns, because=[lambda: 100 * counters.issue_rate(large)])
    claim("OCS-07", large.time_ns / small.time_ns)


def assert_reversed(gpu, dst, src, width):
    gpu.assert_equal(dst, in_reversed_tiles(src, width))
