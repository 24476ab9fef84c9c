"""Barriers in branches, and after half of a block has left.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import shutil
import subprocess
import sys

import pytest

SOURCE = "kernels/barriers.cu"
ONE_BLOCK = """import sys, cupy
given, out = cupy.ones(128, "float32"), cupy.zeros(128, "float32")
cupy.RawModule(path=sys.argv[1]).get_function(sys.argv[2])((1,), (32, 2, 2), (given, out))
cupy.cuda.runtime.deviceSynchronize()
"""


def test_what_the_talk_says(cuda_kernel, gpu, tmp_path, record_property):
    """compute-sanitizer reports a barrier in a divergent branch; in a process of its own, whatever becomes of it."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    array, cubin, errors = gpu.zeros(128), tmp_path / "kernel.cubin", []
    kernels = [cuda_kernel(SOURCE, name) for name in ("converged", "sync_divergent", "tile_sync")]
    launches = [kernel.launch(grid=(1,), block=(32, 2, 2), args=(array, array)) for kernel in kernels]
    gpu.synchronize()
    if tool is None:
        pytest.skip("there is no compute-sanitizer; it comes with the CUDA toolkit")
    for launch in launches:
        cubin.write_bytes(launch.binary.cubin)
        command = [tool, "--tool", "synccheck", sys.executable, "-c", ONE_BLOCK, cubin]
        done = subprocess.run([*command, launch.binary.symbol], capture_output=True, text=True, timeout=60, check=False)
        errors.append(int(done.stdout.rpartition("ERROR SUMMARY: ")[2].split()[0]))
    record_property("kernels with errors", sum(each > 0 for each in errors))
    assert errors[0] == errors[2] == 0 < errors[1]


@pytest.mark.gpuperf(budget_s=0.5)
def test_exchange_in_many_blocks(cuda_kernel, gpu, gpuperf, record_property):
    """Each half of a block reads from the other; a tile of 8 lanes, and a half left alone, from the next thread."""
    given = gpu.random(2**25, seed=91, low=0.5, high=1.5)

    def measure(name):
        out, exits, lanes = gpu.zeros(given.size), name == "sync_after_exit", 8 if name == "tile_sync" else 64

        def check():
            lower, upper = given.reshape(-1, 2, lanes).astype("float64").swapaxes(0, 1)
            following = [*range(1, lanes), 0]
            expected = (2 * lower[:, following] + 1, 0 * upper) if exits else (3 * upper - 1, 2 * lower + 1)
            if name == "tile_sync":
                expected = 2 * lower + 1, 3 * upper[:, following] - 1
            pairs = zip(out.reshape(-1, 2, lanes).swapaxes(0, 1), expected, strict=True)
            right = [float((abs(found - wanted) <= 1e-6 * wanted).mean()) for found, wanted in pairs]
            record_property(f"right elements of {name}", 50 * sum(right))
            return right == [1, 1]

        launch = cuda_kernel(SOURCE, name).launch(grid=(given.size // 128,), block=(32, 2, 2), args=(given, out))
        return gpuperf(launch, bytes=(1 if exits else 2) * given.nbytes, check=check)

    converged, group, exited = (measure(name) for name in ("converged", "group_sync", "sync_after_exit"))
    measure("tile_sync")
    # The branch splits no warp.  Exited warps halve the traffic, but they keep their places.
    assert max(group.time_ns, exited.time_ns) <= 1.1 * converged.time_ns
