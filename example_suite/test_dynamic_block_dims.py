"""Blocks of one shape for all polygons, or of a shape that each block chooses.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/dynamic_block_dims.cu"
SHAPES = ((8, 8, 4), (16, 16, 1), (32, 8, 1), (4, 4, 16))  # of the static block


def polygons_of(widths, heights, edges, seed):
    """Rows of width, height, edges and first vertex; and the vertices, even numbers inside the polygon's box."""
    polygons = np.stack([widths, heights, edges, np.cumsum(edges) - edges], axis=1).astype(np.int32)
    spans = np.repeat(polygons[:, :2] + 1, edges, axis=0)
    return polygons, 2 * (np.random.default_rng(seed).random(spans.shape) * spans).astype(np.int32)


def many_kinds(n, seed):
    """Boxes of 1 to 64 pixels across, 3 to 64 edges; the most work first, so that none of it is last."""
    rng = np.random.default_rng(seed)
    widths, heights = np.clip(np.round(rng.lognormal(2, 1, (2, n))), 1, 64)
    edges = np.clip(np.round(rng.lognormal(1.8, 0.5, n)), 3, 64)
    order = np.argsort(-widths * heights * edges)
    return polygons_of(widths[order], heights[order], edges[order].astype(int), seed)


def crossings(polygon, vertices, repeats):
    """Of all pixels with all edges of one polygon."""
    width, height, edges, first = polygon
    (ax, ay), (bx, by) = vertices[first : first + edges].T, np.roll(vertices[first : first + edges], -1, axis=0).T
    px = 2 * np.add.outer(np.arange(width), np.arange(repeats))[..., None, None] + 1
    py = 2 * np.arange(height)[:, None] + 1
    left = (bx - ax) * (py - ay) > (px - ax) * (by - ay)
    return int((((ay > py) != (by > py)) & (left == (by > ay))).sum())


@pytest.mark.gpuperf(budget_s=0.5, cache="warm")
def test_shape_of_a_block(cuda_kernel, gpu, gpuperf):
    """The polygons that all fit are the control: with nothing that varies there is nothing to gain."""
    n, repeats = 2**16, 16  # so many that no block takes as long as all others together
    mixed, fitting = many_kinds(n, seed=73), polygons_of(*np.tile([[8], [8], [4]], n), seed=74)

    def measure(name, kernel, polygons, vertices, block=(256, 1, 1)):
        totals = gpu.zeros(n, dtype="int32")

        def check():
            found = gpu.to_host(totals)
            for i in range(0, n, 401):
                assert found[i] == crossings(polygons[i], vertices, repeats), f"polygon {i}"

        args = (gpu.array(polygons), gpu.array(vertices), totals, repeats)
        return gpuperf(cuda_kernel(SOURCE, kernel).launch(grid=n, block=block, args=args), name=name, check=check)

    static = [measure(f"static {shape}", "static_shape", *mixed, shape) for shape in SHAPES]
    virtual = measure("virtual", "virtual_shape", *mixed)
    measure("all fit, static (8, 8, 4)", "static_shape", *fitting, (8, 8, 4))
    measure("all fit, virtual", "virtual_shape", *fitting)
    assert virtual.time_ns < min(run.time_ns for run in static)
