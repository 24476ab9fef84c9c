"""Forces between atoms, in tiles of atoms that are neighbours in space or not.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
from typing import NamedTuple

import counters
import numpy as np
import ptx_counts
import pytest
from launching import blocks_over

SOURCE = "kernels/md_tile_spatial_sort.cu"
TILE = 32
PATCH = 8
"""Lattice points across a patch: 512 atoms, 16 tiles."""
SPACING = 10 ** (1 / 3)
"""Of the lattice, in angstrom: 0.1 atoms per cubic angstrom, as in water."""
JITTER = 0.2
"""By how much an atom is off its lattice point, at most, in units of the spacing."""
CUTOFF = 12.0
NO_CUTOFF = 1e6
"""Beyond every pair of atoms."""
BONDS = (1, 2)
"""Atoms whose numbers differ by these are bonded, and exert no force on each other."""


def patch_of(lattice):
    return lattice // PATCH


def patch_random(lattice, _positions, rng):
    """Atoms of a patch together, in any order."""
    return np.lexsort((rng.random(len(lattice)), *patch_of(lattice).T))


def patch_bisect(lattice, positions, rng):
    """Patches halved along their longest side, down to tiles."""
    groups = patch_random(lattice, positions, rng).reshape(-1, PATCH**3)
    while groups.shape[1] > TILE:
        inside = positions[groups]
        longest = np.ptp(inside, axis=1).argmax(axis=1)
        along = np.take_along_axis(inside, longest[:, None, None], axis=2)[..., 0]
        groups = np.take_along_axis(groups, along.argsort(axis=1), axis=1).reshape(-1, groups.shape[1] // 2)
    return groups.ravel()


def patch_morton(lattice, _positions, _rng):
    """Atoms of a patch along a Z-order curve."""
    x, y, z = (lattice % PATCH).T
    code = sum(
        (part >> bit & 1) << (3 * bit + axis)
        for axis, part in enumerate((x, y, z))
        for bit in range(PATCH.bit_length())
    )
    return np.lexsort((code, *patch_of(lattice).T))


ORDERS = {"patch_random": patch_random, "patch_bisect": patch_bisect, "patch_morton": patch_morton}


class Tiles(NamedTuple):
    """What the kernel is given; ``order`` says which atom is where."""

    order: np.ndarray
    atoms: np.ndarray
    pairs: np.ndarray
    masks: np.ndarray


@functools.cache
def system(side):
    """Lattice points and atoms (x, y, z, charge) of a cube of ``side`` lattice points, float32."""
    rng = np.random.default_rng(40)
    lattice = np.stack(np.meshgrid(*3 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 3)
    positions = SPACING * (lattice + rng.uniform(-JITTER, JITTER, lattice.shape))
    charges = rng.uniform(-1, 1, (len(lattice), 1))
    return lattice, np.concatenate([positions, charges], axis=1).astype(np.float32)


@functools.cache
def tiled(side, order_name, cutoff=CUTOFF):
    lattice, atoms = system(side)
    order = ORDERS[order_name](lattice, atoms[:, :3], np.random.default_rng(41))
    close = close_tiles(patch_of(lattice[order[::TILE]]), atoms[order, :3].reshape(-1, TILE, 3), cutoff)
    rows, masks = masks_of(order, close)
    pairs = np.zeros((len(close), 4), dtype=np.int32)
    pairs[:, :2], pairs[:, 2] = close, rows
    return Tiles(order, np.ascontiguousarray(atoms[order]), pairs, masks)


def close_tiles(patches, positions, cutoff):
    """Pairs of tiles (first <= second, sorted) whose boxes are closer than the cutoff, in the same or adjacent patches:
    all that are closer than CUTOFF."""
    low, high = positions.min(axis=1), positions.max(axis=1)
    tiles_of_patch = PATCH**3 // TILE
    places = patches[::tiles_of_patch]
    near = np.argwhere(np.abs(places[:, None] - places[None]).max(axis=2) <= 1)
    first, second = (
        np.broadcast_to(part, (len(near), tiles_of_patch, tiles_of_patch)).ravel()
        for part in (
            (near[:, :1] * tiles_of_patch + np.arange(tiles_of_patch))[:, :, None],
            (near[:, 1:] * tiles_of_patch + np.arange(tiles_of_patch))[:, None, :],
        )
    )
    once = first <= second
    first, second = first[once], second[once]
    gap = np.maximum(0, np.maximum(low[second] - high[first], low[first] - high[second]))
    close = (gap**2).sum(axis=1) < cutoff**2
    first, second = first[close], second[close]
    sort = np.lexsort((second, first))
    return np.stack([first[sort], second[sort]], axis=1)


def masks_of(order, close):
    """For each pair of tiles its row of masks, or -1; and the masks.

    Bit t of a lane's word: whether its atom and that of lane (t + lane) % 32 of the second tile count.
    """
    place = np.argsort(order)
    atoms = np.arange(len(order))
    a = np.concatenate([atoms] + [place[:-bond] for bond in BONDS])  # an atom does not meet itself
    b = np.concatenate([atoms] + [place[bond:] for bond in BONDS])
    a, b = np.concatenate([a, b]), np.concatenate([b, a])  # the other way round counts within a tile
    a, b = a[a // TILE <= b // TILE], b[a // TILE <= b // TILE]
    tiles = len(order) // TILE
    keys = close[:, 0] * tiles + close[:, 1]
    wanted = a // TILE * tiles + b // TILE
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = keys[index] == wanted  # bonded atoms farther apart than the cutoff need no mask
    a, b, index = a[found], b[found], index[found]
    masked, row = np.unique(index, return_inverse=True)
    rows = np.full(len(close), -1, dtype=np.int32)
    rows[masked] = np.arange(len(masked))
    masks = np.full((len(masked), TILE), 0xFFFFFFFF, dtype=np.uint32)
    bits = np.left_shift(np.uint32(1), ((b - a) % TILE).astype(np.uint32))
    np.bitwise_and.at(masks, (row, a % TILE), ~bits)
    return rows, masks


@functools.cache
def forces_on(some, side, cutoff):
    """Forces on the atoms with the numbers ``some``, a range, from all others, in float64; shape (3, len(some))."""
    *places, charges = np.ascontiguousarray(system(side)[1].T, dtype=np.float64)
    result = np.empty((3, len(some)))
    for column, number in enumerate(some):
        d = [axis - axis[number] for axis in places]
        r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        assert np.abs(r2 - cutoff**2).min() > 5e-5  # rounding to float32 moves no atom across the cutoff
        bonded = [number, *(at for bond in BONDS for at in (number - bond, number + bond))]
        others = np.setdiff1d(np.flatnonzero(r2 < cutoff**2), bonded, assume_unique=True)
        r2 = r2[others]
        pull = -(charges[others] * charges[number] / (r2 * np.sqrt(r2)) + (12 / (r2 * r2 * r2) - 6) / (r2 * r2) ** 2)
        result[:, column] = [pull @ axis[others] for axis in d]
    return result


def launch_over(kernel, gpu, tiles, cutoff=CUTOFF):
    forces = gpu.zeros((3, len(tiles.order)))
    args = (*(gpu.array(part) for part in tiles[1:]), forces, len(tiles.order), len(tiles.pairs), cutoff**2)
    return kernel.launch(grid=(blocks_over(len(tiles.pairs), 4),), block=(4 * TILE,), args=args), forces


def check_forces(gpu, tiles, forces, some, expected):
    found = gpu.to_host(forces).astype(np.float64)
    scale = np.abs(expected).max()
    assert np.abs(found.sum(axis=1)).max() <= 1e-4 * scale * np.sqrt(found.shape[1])  # to every force a counterforce
    by_number = np.empty_like(found)
    by_number[:, tiles.order] = found
    np.testing.assert_allclose(by_number[:, some], expected, rtol=0, atol=2e-4 * scale)


@pytest.mark.parametrize("order", ORDERS)
def test_forces_are_right(cuda_kernel, gpu, order):
    check_all_forces(cuda_kernel, gpu, order, CUTOFF)


def test_forces_without_a_cutoff_are_right(cuda_kernel, gpu):
    check_all_forces(cuda_kernel, gpu, "patch_bisect", NO_CUTOFF)


def check_all_forces(cuda_kernel, gpu, order, cutoff):
    side = 2 * PATCH
    tiles = tiled(side, order, cutoff)
    assert sorted(tiles.order) == list(range(side**3))
    launch, forces = launch_over(cuda_kernel(SOURCE, "tile_forces"), gpu, tiles, cutoff)
    launch()
    everyone = range(side**3)
    check_forces(gpu, tiles, forces, everyone, forces_on(everyone, side, cutoff))


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_forces_of_many_atoms(cuda_kernel, gpu, gpuperf, claim):
    """The atoms without a cutoff are the control: every lane has a force to compute, in whatever order they are."""
    kernel = cuda_kernel(SOURCE, "tile_forces")
    for arch in kernel.profiles:
        counts = ptx_counts.instructions(kernel, arch)
        wide = sum(n for opcode, n in counts.items() if opcode.startswith("ld.global.v4"))
        assert wide == 3  # an atom of either tile, and which tiles they are

    side, small = 6 * PATCH, 2 * PATCH

    def expected(of_side, cutoff):
        some = range(0, of_side**3, of_side**3 // 30 | 1)
        return some, forces_on(some, of_side, cutoff)

    def measure(order, of_side=side, cutoff=CUTOFF, name="{}"):
        tiles = tiled(of_side, order, cutoff)
        launch, forces = launch_over(kernel, gpu, tiles, cutoff)
        return gpuperf(
            launch,
            name=name.format(order),
            flops=12 * TILE * TILE * len(tiles.pairs),
            reset=lambda: forces.fill(0),
            check=lambda: check_forces(gpu, tiles, forces, *expected(of_side, cutoff)),
        )

    random, bisect, morton = (measure(order) for order in ORDERS)
    random_and_all, bisect_and_all = (
        measure(order, small, NO_CUTOFF, "{} without a cutoff") for order in ("patch_random", "patch_bisect")
    )

    def lanes_beyond_the_distance_test(run, order):
        """Those that store a force there, as three floats.  At the start all lanes of a warp store an atom, of 16 bytes
        by one instruction, and a force of zero."""
        warps = len(tiled(side, order).pairs)
        stored = counters.bytes_to_shared(run) - warps * TILE * (16 + 12)
        stores = counters.memory_instructions(run, "shared", "st") - warps * (1 + 3)
        return stored / (4 * stores)

    def lanes_gained():
        """Where atoms meet, which is what sorting changes; all lanes take the way there."""
        unsorted = lanes_beyond_the_distance_test(random, "patch_random")
        return lanes_beyond_the_distance_test(bisect, "patch_bisect") / unsorted

    def bytes_saved():
        """By a tile: what all pairs of atoms would load one by one, against what was loaded."""
        pairs_of_atoms = TILE * TILE * len(tiled(side, "patch_bisect").pairs)
        return 2 * 16 * pairs_of_atoms / counters.bytes_asked_for(bisect)

    claim("MD-01", lanes_gained)
    claim("MD-02", lambda: lanes_beyond_the_distance_test(bisect, "patch_bisect"))
    claim("MD-04", bytes_saved)
    fewer = len(tiled(side, "patch_random").pairs) / len(tiled(side, "patch_bisect").pairs)
    claim("MD-03", random.time_ns / bisect.time_ns, because=[fewer])
    claim("MD-05", random_and_all.time_ns / bisect_and_all.time_ns)
    assert random.time_ns >= 1.2 * morton.time_ns
