"""Values at the faces of a cell, from the slopes in it: what a register saves.

After the MUSCL reconstruction of HERACLES++, one of the kernels that R. Bourgeois, "Five basic performance advice for
porting kernels to the GPU", reports on.
"""

import numpy as np
import pytest

SOURCE = "kernels/muscl_reconstruction.cu"
VARIANTS = ("naive, VanLeer", "fixed, VanLeer", "dividing, VanLeer", "naive, Minmod", "fixed, Minmod")


def limited(limiter, left, right):
    same_sign = left * right > 0
    ratio = np.where(same_sign, right / left, 1.0)
    way = 4 * ratio / (ratio + 1) ** 2 if limiter == "VanLeer" else 2 * np.minimum(ratio, 1.0) / (1 + ratio)
    return np.where(same_sign, way * (left + right) / 2, 0.0)


def at_the_faces(limiter, value, widths, direction):
    """Left and right face of every inner cell; ``value`` is [k, j, i], NumPy or CuPy, and so is ``widths``."""
    value, width = value.swapaxes(0, 2 - direction)[:, 1:-1, 1:-1], widths[direction][:, None, None]
    slopes = (value[1:] - value[:-1]) / ((width[1:] + width[:-1]) / 2)
    way = width[1:-1] / 2 * limited(limiter, slopes[:-1], slopes[1:])
    return [face.swapaxes(0, 2 - direction) for face in (value[1:-1] - way, value[1:-1] + way)]


@pytest.mark.gpuperf(budget_s=0.5)
def test_reconstruction_of_a_cube(cuda_kernel, gpu, gpuperf):
    n = 256
    host_widths = np.random.default_rng(361).uniform(0.5, 1.5, (3, n))
    inverse_distances = np.pad(2 / (host_widths[:, :-1] + host_widths[:, 1:]), ((0, 0), (0, 1)))
    value = gpu.random((n, n, n), dtype="float64", seed=362, low=1, high=2)
    widths, inverse = gpu.array(host_widths), gpu.array(inverse_distances)
    face = gpu.zeros((6, n, n, n), dtype="float64")

    def measure(name):
        variant, limiter = name.split(", ")
        expression = f"reconstruct_{variant}<{limiter}{'' if variant == 'naive' else ', 3'}>"
        kernel = cuda_kernel(SOURCE, f"reconstruct_{variant}", name_expression=expression)
        more = {"naive": (n, 3), "fixed": (inverse, n), "dividing": (n,)}[variant]

        def check():
            for direction in range(3):
                for side, expected in enumerate(at_the_faces(limiter, value, widths, direction)):
                    gpu.assert_allclose(face[2 * direction + side, 1:-1, 1:-1, 1:-1], expected, rtol=1e-12)
            face.fill(0)  # what the next kernel does not write is seen

        launch = kernel.launch(grid=(2, n - 2, n - 2), block=(128,), args=(face, value, widths, *more))
        return gpuperf(launch, name=name, bytes=7 * 8 * (n - 2) ** 3, check=check)

    naive, fixed, dividing, naive_minmod, fixed_minmod = (measure(name) for name in VARIANTS)
    assert fixed.time_ns < naive.time_ns
    assert fixed_minmod.time_ns < naive_minmod.time_ns
    assert 0.97 * fixed.time_ns <= dividing.time_ns < naive.time_ns  # the control: divisions alone cost little
