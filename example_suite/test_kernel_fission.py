"""One kernel for three kinds of work, or three kernels: registers follow the high-water mark.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/kernel_fission.cu"
PARTS = {"bonds": 2, "angles": 3, "dihedrals": 4}
"""Atoms of a term, neighbours along a chain; of the four in a row of an angle, three."""


def cross(a, b):
    (a1, a2), (b1, b2) = ([np.roll(each, -k, axis=-1) for k in (1, 2)] for each in (a, b))
    return a1 * b2 - a2 * b1


def energy(places):
    """Of each term, from the places of its atoms, (terms, atoms, 3)."""
    steps = [places[:, k + 1] - places[:, k] for k in range(places.shape[1] - 1)]
    lengths = [(step**2).sum(axis=1) ** 0.5 for step in steps]
    if len(steps) == 1:
        return 3.0 * (lengths[0] - 1.1) ** 2
    if len(steps) == 2:
        return 2.0 * (np.arccos(-(steps[0] * steps[1]).sum(axis=1) / (lengths[0] * lengths[1])) - 1.7) ** 2
    normal_a, normal_b = cross(steps[0], steps[1]), cross(steps[1], steps[2])
    phi = np.arctan2(lengths[1] * (steps[0] * normal_b).sum(axis=1), (normal_a * normal_b).sum(axis=1))
    return sum(k * (1 + np.cos(m * phi - phase)) for m, k, phase in ((1, 0.7, 0.4), (2, 0.5, -0.9), (3, 0.3, 1.6)))


def forces_of(atoms, terms, nudge=1e-5):
    """How the energy falls when an atom is nudged, in float64."""
    out = 0 * atoms[:, :3].astype("float64")
    for atom, axis in np.ndindex(terms.shape[1], 3):
        here, there = (atoms[terms][..., :3].astype("float64") for _ in range(2))
        here[:, atom, axis] -= nudge
        there[:, atom, axis] += nudge
        fall = (energy(here) - energy(there)) / (2 * nudge)
        out[:, axis] += np.bincount(terms[:, atom], weights=fall, minlength=len(atoms))
    return out


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_one_launch_or_three(cuda_kernel, gpu, gpuperf):
    def measure(name, parts=tuple(PARTS), n=2**20, seed=141):
        t = np.arange(n)[:, None] * [1.0, 1.0, 0.37] + [0.0, np.pi / 2, 0.0]  # a crumpled chain, steps of about 1.2
        chain = 1.2 * np.sin(t) + np.random.default_rng(seed).uniform(-0.15, 0.15, (n, 4))[:, :3]
        atoms, forces = gpu.array(np.pad(chain, ((0, 0), (0, 1))).astype(np.float32)), gpu.zeros((n, 4))
        rows = [(np.arange(n - width + 1)[:, None] + np.arange(width)).astype(np.int32) for width in (2, 4, 4)]
        terms = [(gpu.array(each), len(each)) for each in rows]
        bonds, angles, dihedrals = blocks = [-(-len(rows[k]) // 256) * (part in parts) for k, part in enumerate(PARTS)]

        def launch(kernel, blocks, *args):
            return cuda_kernel(SOURCE, kernel).launch(grid=blocks, block=256, args=(atoms, *args, forces))

        def check():
            some = [each[:, : PARTS[part]] for (each, _), part in zip(terms, parts, strict=False)]
            expected = sum(forces_of(atoms, each) for each in some)
            gpu.assert_allclose(forces[:, :3], expected, rtol=0, atol=1e-4 * float(abs(expected).max()))

        if name.startswith("fused"):
            work = launch("fused", bonds + angles + dihedrals, *terms[0], *terms[1], *terms[2], bonds, bonds + angles)
        else:
            apart = [launch(part, blocks[k], *terms[k]) for k, part in enumerate(parts)]
            work = apart[0] if len(apart) == 1 else lambda: [each() for each in apart]
        return gpuperf(work, name=name, reset=lambda: forces.fill(0), check=check)

    split, fused = (measure(name, n=2**19) for name in ("three kernels", "fused"))  # in the L2, wherever they lie
    for name in ("bonds", "fused, bonds only"):
        measure(name, ("bonds",))
    few_split, few_fused = (measure(name, n=2**14, seed=142) for name in ("three kernels, small", "fused, small"))
    assert few_fused.time_ns < few_split.time_ns
    assert split.time_ns / fused.time_ns < few_split.time_ns / few_fused.time_ns  # long kernels hide their launches
