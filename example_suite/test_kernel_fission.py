"""One kernel for three kinds of work, or three kernels: registers follow the high-water mark.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

from pytest_gpuperf.compile.machine_code.occupancy import occupancy

SOURCE = "kernels/kernel_fission.cu"
PARTS = {"bonds": 2, "angles": 3, "dihedrals": 4}
"""Atoms of a term."""
BLOCK = 256
TWISTS = ((1, 0.7, 0.4), (2, 0.5, -0.9), (3, 0.3, 1.6))
"""Multiplicity, strength and phase of a dihedral's three terms."""
NUDGE = 1e-5
"""Length; for differences of energies in float64, whose error is then near 1e-10."""


def dot(a, b):
    return (a * b).sum(axis=-1)


def cross(a, b):
    """For NumPy and CuPy arrays (..., 3)."""
    out = a * 0
    for axis in range(3):
        y, z = (axis + 1) % 3, (axis + 2) % 3
        out[..., axis] = a[..., y] * b[..., z] - a[..., z] * b[..., y]
    return out


def energy(part, places):
    """Of each term, from the places of its atoms, (terms, atoms, 3) in float64."""
    steps = places[:, 1:] - places[:, :-1]
    if part == "bonds":
        return 3.0 * (dot(steps[:, 0], steps[:, 0]) ** 0.5 - 1.1) ** 2
    if part == "angles":
        a, b = -steps[:, 0], steps[:, 1]
        return 2.0 * (np.arccos(dot(a, b) / (dot(a, a) * dot(b, b)) ** 0.5) - 1.7) ** 2
    a, axis, b = steps[:, 0], steps[:, 1], steps[:, 2]
    of_a, of_b = cross(a, axis), cross(axis, b)
    phi = np.arctan2(dot(axis, axis) ** 0.5 * dot(a, of_b), dot(of_a, of_b))
    return sum(k * (1 + np.cos(m * phi - phase)) for m, k, phase in TWISTS)


def forces_of(part, atoms, terms):
    """On every atom: how the energy falls when it is nudged.  For NumPy and CuPy arrays."""
    places = atoms[terms][..., :3].astype("float64")
    out = atoms[:, :3].astype("float64") * 0
    for atom in range(PARTS[part]):
        for axis in range(3):
            energies = []
            for nudge in (NUDGE, -NUDGE):
                nudged = places.copy()
                nudged[:, atom, axis] += nudge
                energies.append(energy(part, nudged))
            fall = (energies[1] - energies[0]) / (2 * NUDGE)
            out[:, axis] += np.bincount(terms[:, atom], weights=fall, minlength=len(atoms))
    return out


def chain(n, seed):
    """A crumpled chain of n atoms, (x, y, z, 0): steps of about 1.2, no angle flat, no three atoms in line."""
    t = np.arange(n)[:, None] * [1.0, 1.0, 0.37] + [0.0, np.pi / 2, 0.0]
    places = np.random.default_rng(seed).uniform(-0.15, 0.15, (n, 4)) + np.pad(1.2 * np.sin(t), ((0, 0), (0, 1)))
    places[:, 3] = 0
    return places.astype(np.float32)


def terms_of(part, n):
    """Neighbours along the chain, int32: rows of 2 or 4, of which an angle uses 3."""
    width = 2 if part == "bonds" else 4
    return (np.arange(n - width + 1)[:, None] + np.arange(width)).astype(np.int32)


class Molecule:
    """A chain with its terms on the device, and what is to be launched on them."""

    def __init__(self, cuda_kernel, gpu, n, seed, options=()):
        self._gpu, self._options, self._kernel = gpu, options, cuda_kernel
        self.host = chain(n, seed)
        self.terms = {part: terms_of(part, n) for part in PARTS}
        self._atoms = gpu.array(self.host)
        self._terms = {part: gpu.array(terms) for part, terms in self.terms.items()}
        self.forces = gpu.zeros((n, 4))

    def kernel(self, name):
        return self._kernel(SOURCE, name, options=self._options)

    def blocks(self, part):
        return blocks_over(len(self.terms[part]), BLOCK)

    def apart(self, part):
        args = (self._atoms, self._terms[part], len(self.terms[part]), self.forces)
        return self.kernel(part).launch(grid=self.blocks(part), block=BLOCK, args=args)

    def fused(self, parts=tuple(PARTS)):
        """One launch for some of the parts; the others have no blocks."""
        blocks = [self.blocks(part) if part in parts else 0 for part in PARTS]
        pairs = [(self._terms[part], len(self.terms[part])) for part in PARTS]
        starts = (blocks[0], blocks[0] + blocks[1])
        args = (self._atoms, *(value for pair in pairs for value in pair), *starts, self.forces)
        return self.kernel("fused").launch(grid=sum(blocks), block=BLOCK, args=args)

    def reset(self):
        self.forces.fill(0)

    def check(self, parts=tuple(PARTS)):
        expected = self.expected(parts)
        found = self.forces[:, :3]
        largest = float(abs(expected).max())
        self._gpu.assert_allclose(found, expected, rtol=0, atol=1e-4 * largest)
        assert float(abs(found.astype("float64").sum(axis=0)).max()) < 1e-5 * largest * len(self.host) ** 0.5

    @functools.cache  # noqa: B019 (as long as the test)
    def expected(self, parts):
        return sum(forces_of(part, self._atoms, self._terms[part]) for part in parts)


@pytest.mark.parametrize("options", [(), ("--use_fast_math",)], ids=["accurate", "fast"])
def test_forces_are_right(cuda_kernel, gpu, options):
    molecule = Molecule(cuda_kernel, gpu, 5003, seed=140, options=options)
    runs = [(molecule.apart(part), (part,)) for part in PARTS] + [(molecule.fused(), tuple(PARTS))]
    for launch, parts in runs:
        molecule.reset()
        launch()
        expected = sum(forces_of(part, molecule.host, molecule.terms[part]) for part in parts)
        found = gpu.to_host(molecule.forces)
        np.testing.assert_array_equal(found[:, 3], 0)
        np.testing.assert_allclose(found[:, :3], expected, rtol=0, atol=1e-4 * abs(expected).max())


def test_registers_and_stack(cuda_kernel, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*PARTS, "fused")}
    profiles = {name: kernel.profiles for name, kernel in kernels.items()}
    archs = profiles["fused"]
    registers = {name: {arch: each[arch].registers for arch in archs} for name, each in profiles.items()}
    assert all(registers["fused"][arch] > registers["bonds"][arch] for arch in archs)
    claim("FIS-01", min(registers["fused"][arch] / max(registers[part][arch] for part in PARTS) for arch in archs))

    fast = cuda_kernel(SOURCE, "dihedrals", options=("--use_fast_math",))
    assert all(profile.stack_bytes == 0 for profile in fast.profiles.values())
    claim("FIS-04", min(profile.stack_bytes for profile in profiles["dihedrals"].values()))


def test_a_cap_lifts_what_the_hungriest_part_imposes(cuda_kernel):
    """The control: held to 32 registers, the fused kernel has the occupancy of bonds, for a few bytes spilled."""
    capped = cuda_kernel(SOURCE, "fused", options=("-maxrregcount=32",))
    for arch, profile in capped.profiles.items():
        assert occupancy(profile, arch, BLOCK).fraction == 1
        assert profile.spill_store_bytes <= 8


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_one_launch_or_three(cuda_kernel, gpu, gpuperf, claim):
    """What fusion is good for is short kernels; with a long one, three launches cost next to nothing."""
    molecule = Molecule(cuda_kernel, gpu, 2**20, seed=141)
    apart = [molecule.apart(part) for part in PARTS]
    together = molecule.fused()
    # In the slots of a Hopper SM.  One of sm_120 has room for 48 warps, whom these registers suffice.
    alone, fused = (
        [occupancy(profile, "sm_90", BLOCK).fraction for profile in launch.kernel.profiles.values()]
        for launch in (apart[0], together)
    )
    assert min(alone) == 1
    claim("FIS-02", min(alone) / max(fused))

    def measure(workload, name, parts=tuple(PARTS), of=molecule):
        return gpuperf(workload, name=name, reset=of.reset, check=functools.partial(of.check, parts))

    split, whole = measure(one_after_another(apart), "three kernels"), measure(together, "fused")
    bonds = measure(apart[0], "bonds", ("bonds",))
    fused_bonds = measure(molecule.fused(("bonds",)), "fused, bonds only", ("bonds",))
    small = Molecule(cuda_kernel, gpu, 2**14, seed=142)
    small_split = measure(one_after_another([small.apart(part) for part in PARTS]), "three kernels, small", of=small)
    small_whole = measure(small.fused(), "fused, small", of=small)

    claim("FIS-06", lambda: counters.achieved_occupancy(bonds) / counters.achieved_occupancy(fused_bonds))
    claim("FIS-03", fused_bonds.time_ns / bonds.time_ns, because=[lambda: counters.l2_throughput(bonds)])
    claim("FIS-07", split.time_ns / whole.time_ns)
    claim("FIS-05", small_split.time_ns / small_whole.time_ns)


def one_after_another(launches):
    def launch_all():
        for launch in launches:
            launch()

    return launch_all
