"""Forces between atoms, in tiles of 32 atoms that are neighbours in space or not.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

TILE, PATCH, BOND = 32, 8, 2
"""Atoms; lattice points across a patch of 16 tiles; atoms with numbers this near are bonded, and exert no force."""


def system(side):
    """Lattice points and atoms (x, y, z, charge) of a cube: 0.1 atoms per cubic angstrom, as in water."""
    rng = np.random.default_rng(40)
    lattice = np.stack(np.meshgrid(*3 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 3)
    positions = 10 ** (1 / 3) * (lattice + rng.uniform(-0.2, 0.2, lattice.shape))
    return lattice, np.hstack([positions, rng.uniform(-1, 1, (len(lattice), 1))]).astype(np.float32)


def sort(name, lattice, atoms):
    """The atoms of a patch together: in any order, along a Z-order curve, or halved along the longest side to tiles."""
    patches, keys = (lattice // PATCH).T, np.random.default_rng(41).random(len(lattice))
    if name == "patch_morton":
        keys = sum((lattice[:, k] % PATCH >> bit & 1) << 3 * bit + k for bit in range(3) for k in range(3))
    groups = np.lexsort((keys, *patches)).reshape(-1, PATCH**3)
    while name == "patch_bisect" and groups.shape[1] > TILE:
        inside = atoms[groups, :3]
        longest = np.ptp(inside, axis=1).argmax(axis=1)[:, None, None]
        along = np.take_along_axis(inside, longest, axis=2)[..., 0]
        groups = np.take_along_axis(groups, along.argsort(axis=1), axis=1).reshape(-1, groups.shape[1] // 2)
    return groups.ravel()


def pairs_of_tiles(atoms, order, cutoff):
    """Near tiles (first, second, row of masks or -1, unused); bit t of a mask is for the lane t beyond its own."""
    tiles = atoms[order, :3].reshape(-1, TILE, 3)
    low, high = tiles.min(axis=1), tiles.max(axis=1)
    near = np.zeros((len(tiles), len(tiles)), dtype=bool)
    for k in range(len(tiles)):
        gap = np.maximum(0, np.maximum(low[k:] - high[k], low[k] - high[k:]))
        near[k, k:] = (gap**2).sum(axis=1) < cutoff**2
    pairs = np.pad(np.argwhere(near), ((0, 0), (0, 2))).astype(np.int32, order="C")
    number, place = np.cumsum(near).reshape(near.shape) - 1, np.argsort(order)
    masks = np.full((len(pairs), TILE), 0xFFFFFFFF, dtype=np.uint32)
    for bond in range(-BOND, BOND + 1):
        atom = np.arange(max(0, -bond), len(order) - max(0, bond))
        a, b = place[atom], place[atom + bond]
        a, b = (each[near[a // TILE, b // TILE]] for each in (a, b))
        masks[number[a // TILE, b // TILE], a % TILE] &= ~(np.uint32(1) << ((b - a) % TILE).astype(np.uint32))
    masked = (masks != 0xFFFFFFFF).any(axis=1)
    pairs[:, 2] = np.where(masked, np.cumsum(masked) - 1, -1)
    return pairs, masks[masked]


def force_on(atom, atoms, cutoff):
    """In float64, from U(r) = q q' / r + 1 / r^12 - 1 / r^6."""
    d = (atoms - atoms[atom])[:, :3]
    r2 = (d**2).sum(axis=1)
    others = (r2 < cutoff**2) & (abs(np.arange(len(atoms)) - atom) > BOND)
    d, r2, charges = d[others], r2[others], atoms[others, 3] * atoms[atom, 3]
    return -(charges / r2**1.5 + (12 / r2**3 - 6) / r2**4) @ d


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_forces_of_many_atoms(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("kernels/md_tile_spatial_sort.cu", "tile_forces")

    def measure(name, side=6 * PATCH, cutoff=12.0, more=""):
        lattice, atoms = system(side)
        order = sort(name, lattice, atoms)
        pairs, masks = pairs_of_tiles(atoms, order, cutoff)
        forces = gpu.zeros((3, len(order)))
        args = (*map(gpu.array, (atoms[order], pairs, masks)), forces, len(order), len(pairs), cutoff**2)

        def check():
            some = np.arange(0, len(order), len(order) // 100 | 1)
            expected = np.array([force_on(atom, atoms.astype(np.float64), cutoff) for atom in some]).T
            found = gpu.to_host(forces)[:, np.argsort(order)[some]]
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 * abs(expected).max())

        launch = kernel.launch(grid=(-(-len(pairs) // 4),), block=(4 * TILE,), args=args)
        flops = 12 * TILE * TILE * len(pairs)
        return gpuperf(launch, name=name + more, flops=flops, reset=lambda: forces.fill(0), check=check)

    random, bisect, morton = (measure(name) for name in ("patch_random", "patch_bisect", "patch_morton"))
    without = [measure(name, 2 * PATCH, 1e6, " without a cutoff") for name in ("patch_random", "patch_bisect")]
    assert max(bisect.time_ns, morton.time_ns) < random.time_ns
    # The control: every lane has a force to compute, in whatever order the atoms are.
    assert without[0].time_ns == pytest.approx(without[1].time_ns, rel=0.1)
