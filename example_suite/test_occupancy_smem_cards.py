"""Shared memory as the limit of occupancy: smaller hands, more players.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

import numpy as np
import pytest

SOURCE = "kernels/occupancy_smem_cards.cu"
LARGE, SMALL, BARE = (128, 98), (96, 73.5), (128, 0.5)
"""Threads of a block, and the KB of shared memory that it asks for; the bare one for no more than it uses."""


def launch_over(kernel, hand, src, dst, blocks):
    return kernel.launch(grid=blocks, block=hand[0], args=(src, dst, src.size), shared_bytes=int(hand[1] * 1024))


def in_reversed_tiles(values, width):
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
    np.testing.assert_array_equal(gpu.to_host(dst), in_reversed_tiles(gpu.to_host(src), hand[0]))


def test_who_gets_a_hand(cuda_kernel, gpu, record_property):
    """With the talk's hands, for an A100: three quarters of the hand for three quarters of the threads."""
    kernel, line = cuda_kernel(SOURCE, "reverse_tiles"), gpu.empty(1024)
    large, small = (launch_over(kernel, hand, line, line, 1).occupancy for hand in ((128, 70), (96, 52.5)))
    if "sm_80" in large:
        record_property("warps of large hands on an A100", large["sm_80"].warps_per_sm)
        record_property("warps of small hands on an A100", small["sm_80"].warps_per_sm)
        assert large["sm_80"].warps_per_sm < small["sm_80"].warps_per_sm


@pytest.mark.gpuperf(budget_s=0.4)
def test_copy_by_size_of_hand(cuda_kernel, gpu, gpuperf):
    src = gpu.random(2**25, seed=121)

    def measure(hand):
        dst = gpu.empty_like(src)

        def check():
            gpu.assert_equal(dst, in_reversed_tiles(src, hand[0]))

        # 48 blocks per SM are a multiple of what is resident, be it 2, 3 or 16.
        launch = launch_over(cuda_kernel(SOURCE, "reverse_tiles"), hand, src, dst, blocks=48 * gpu.sm_count)
        return gpuperf(launch, name=f"{hand[0]} threads with {hand[1]:g} KB", bytes=2 * src.nbytes, check=check)

    large, small, bare = map(measure, (LARGE, SMALL, BARE))
    assert bare.time_ns < small.time_ns < large.time_ns
