"""Eight cases of an adjustment, by branches or by what they have in common.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/polygon_edge_dataflow.cu"
ONCE, HOT = ("branch_once", "dataflow_once"), ("branch_hot", "four_arms_hot", "dataflow_hot")
CORNERS = ((0, 1), (0, 3), (2, 1), (2, 3))  # of a box: left bottom, left top, right bottom, right top; x and y of each


def moved(inside, flags, boxes, edges):
    """Edges after one adjustment, case by case: the corner that is alone inside, or alone outside, is subtracted."""
    out = edges.copy()
    for corner, (x, y) in enumerate(CORNERS):
        alone = (inside % 2 == 1) & (flags[:, corner] != (inside == 3))
        out -= alone[:, None] * boxes[:, [x, y, x, y]]
    return out


def moved_often(seeds, boxes, edges):
    flags = (0 * edges).astype("uint8")
    for _ in range(64):
        seeds = seeds * 1664525 + 1013904223
        for corner in range(4):
            flags[:, corner] = seeds >> 28 + corner & 1
        edges = moved(flags.sum(axis=1), flags, boxes, edges)
    return edges


@pytest.mark.gpuperf(budget_s=0.6)
def test_adjusting_edges(cuda_kernel, gpu, gpuperf):
    def measure(name, reference, *inputs, moves=52, of=""):
        out = gpu.zeros(inputs[-1].shape)
        n = len(out)
        launch = cuda_kernel(SOURCE, name).launch(grid=(n // 256,), block=(256,), args=(*inputs, out, n))
        return gpuperf(
            launch, name=name + of, bytes=moves * n, check=lambda: gpu.assert_allclose(out, reference(*inputs), rtol=0)
        )

    n, few = 2**23, 2**21
    flags = (np.random.default_rng(63).integers(0, 16, 2**16)[:, None] >> np.arange(4) & 1).astype(np.uint8)
    inside = gpu.array(np.resize(flags.sum(axis=1, dtype=np.int32), n))
    boxes, edges = (gpu.random((n, 4), seed=seed, low=-1, high=1) for seed in (64, 65))
    for name in ONCE:
        measure(name, moved, inside, gpu.array(np.resize(flags, (n, 4))), boxes, edges, moves=56)
    seeds = gpu.random(few, dtype="uint32", seed=66, low=0, high=2**32)
    branch, arms, dataflow = (measure(name, moved_often, seeds, boxes[:few], edges[:few]) for name in HOT)
    # The control: the same flags for all lanes of a warp, so no warp diverges.
    alike = gpu.array(np.random.default_rng(67).integers(0, 2**32, few // 32, dtype=np.uint32).repeat(32))
    branch_alike, arms_alike, dataflow_alike = (
        measure(name, moved_often, alike, boxes[:few], edges[:few], of=", same flags in a warp") for name in HOT
    )
    for diverges, control in (branch, branch_alike), (arms, arms_alike):
        assert dataflow.time_ns < diverges.time_ns
        assert control.time_ns / dataflow_alike.time_ns < diverges.time_ns / dataflow.time_ns
