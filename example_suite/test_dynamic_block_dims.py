"""Blocks of one shape for all polygons, or of a shape that each block chooses.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/dynamic_block_dims.cu"
SHAPES = ((8, 8, 4), (16, 16, 1), (32, 8, 1), (4, 4, 16))
"""Of the static block."""
THREADS = 256
LARGEST = 64
"""Pixels across, and edges."""


def polygons_of(widths, heights, edges, seed):
    """Rows of width, height, edges and first vertex; and the vertices, even numbers inside the polygon's box."""
    edges = np.asarray(edges)
    polygons = np.stack([widths, heights, edges, np.cumsum(edges) - edges], axis=1).astype(np.int32)
    spans = np.repeat(polygons[:, :2] + 1, edges, axis=0)
    vertices = 2 * (np.random.default_rng(seed).random(spans.shape) * spans).astype(np.int32)
    return polygons, vertices


def many_kinds(n, seed):
    """Boxes from a pixel to LARGEST across, three to LARGEST edges; the most work first, so that none of it is last."""
    rng = np.random.default_rng(seed)
    widths, heights = np.clip(np.round(rng.lognormal(2, 1, (2, n))), 1, LARGEST)
    edges = np.clip(np.round(rng.lognormal(1.8, 0.5, n)), 3, LARGEST)
    order = np.argsort(-widths * heights * edges)
    return polygons_of(widths[order], heights[order], edges[order].astype(int), seed)


def crossings(polygon, vertices, repeats):
    """Of all pixels with all edges of one polygon."""
    width, height, edges, first = polygon
    (ax, ay), (bx, by) = vertices[first : first + edges].T, np.roll(vertices[first : first + edges], -1, axis=0).T
    px = 2 * np.add.outer(np.arange(width), np.arange(repeats))[..., None, None] + 1
    py = 2 * np.arange(height)[:, None] + 1
    across = (ay > py) != (by > py)
    left = (bx - ax) * (py - ay) > (px - ax) * (by - ay)
    return int((across & (left == (by > ay))).sum())


def launch_over(kernel, polygons, vertices, totals, repeats, block):
    return kernel.launch(grid=(totals.size,), block=block, args=(polygons, vertices, totals, repeats))


def right_totals(cuda_kernel, gpu, polygons, vertices, repeats):
    """Whether each is right: of the static block in each shape, and of the virtual one."""
    expected = [crossings(polygon, vertices, repeats) for polygon in polygons]
    static, virtual = (cuda_kernel(SOURCE, name) for name in ("static_shape", "virtual_shape"))
    right = []
    for kernel, block in (*((static, shape) for shape in SHAPES), (virtual, (THREADS, 1, 1))):
        totals = gpu.full(len(polygons), -1, dtype="int32")
        launch_over(kernel, gpu.array(polygons), gpu.array(vertices), totals, repeats, block)()
        right.append(gpu.to_host(totals) == expected)
    return np.concatenate(right)


def test_every_pixel_meets_every_edge_once(cuda_kernel, gpu, claim):
    many = right_totals(cuda_kernel, gpu, *many_kinds(300, seed=70), repeats=3)
    tiny = polygons_of(*np.array([(1, 1, 3), (2, 1, 3), (1, 64, 5), (64, 1, 64), (3, 3, 7)]).T, seed=71)
    few = right_totals(cuda_kernel, gpu, *tiny, repeats=1)  # most threads are left over
    claim("DBD-01", 100 * np.concatenate([many, few]).mean())


def test_shapes_that_blocks_choose(cuda_kernel, gpu, claim):
    polygons, _ = many_kinds(10_000, seed=72)
    shapes = gpu.zeros((len(polygons), 3), dtype="int32")
    choose = cuda_kernel(SOURCE, "choose_shapes")
    choose.launch(
        grid=(blocks_over(len(polygons), 256),), block=(256,), args=(gpu.array(polygons), shapes, THREADS, 10_000)
    )()
    found = gpu.to_host(shapes)
    powers = (found > 0) & (found & (found - 1) == 0)
    fits = powers.all(axis=1) & (found.prod(axis=1) <= THREADS)
    covers = (found >= polygons[:, :3]).all(axis=1)
    assert (covers | (found.prod(axis=1) == THREADS)).all()  # threads are left over only where nothing is left to do
    claim("DBD-03", 100 * fits.mean())


@pytest.mark.gpuperf(budget_s=0.5, cache="warm")
def test_shape_of_a_block(cuda_kernel, gpu, gpuperf, claim):
    """The polygons that all fit are the control: with nothing that varies there is nothing to gain."""
    n, repeats = 2**16, 16  # so many that no block takes as long as all others together
    static, virtual = (cuda_kernel(SOURCE, name) for name in ("static_shape", "virtual_shape"))
    fits_static = polygons_of(*np.tile([[8], [8], [4]], n), seed=74)

    def measure(name, kernel, given, block):
        polygons, vertices = given
        totals = gpu.zeros(n, dtype="int32")
        launch = launch_over(kernel, gpu.array(polygons), gpu.array(vertices), totals, repeats, block)

        def check():
            found = gpu.to_host(totals)
            for i in range(0, n, 401):
                assert found[i] == crossings(polygons[i], vertices, repeats), f"polygon {i}"

        return gpuperf(launch, name=name, check=check)

    mixed = many_kinds(n, seed=73)
    shapes = {shape: measure(f"static {shape}", static, mixed, shape) for shape in SHAPES}
    chosen = measure("virtual", virtual, mixed, (THREADS, 1, 1))
    fitting = measure("all fit, static (8, 8, 4)", static, fits_static, (8, 8, 4))
    needless = measure("all fit, virtual", virtual, fits_static, (THREADS, 1, 1))
    wide = shapes[32, 8, 1]

    claim("DBD-05", lambda: counters.active_lanes(chosen) / counters.active_lanes(wide))
    claim("DBD-02", wide.time_ns / chosen.time_ns)
    claim("DBD-06", min(run.time_ns for run in shapes.values()) / chosen.time_ns)
    claim("DBD-04", fitting.time_ns / needless.time_ns)
