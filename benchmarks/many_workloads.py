"""What a workload costs in a suite of ten thousand, in one module and in a hundred: recorded, and gated twice.

    python benchmarks/many_workloads.py [--workloads 10000] [--output docs/results/many_workloads.md]

Without a GPU, one kernel at as many grids.  Wall-clock time of whole pytest runs, so pytest's own part is in it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES = (1, 100)
RUNS = (
    ("recorded", "--update-baselines", "--gpuperf-arch=sm_90"),
    ("gated", "--gpuperf"),
    ("gated again", "--gpuperf"),
)
KERNEL = """
extern "C" __global__ void scale(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2.0f;
}
"""
TEST = """
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_scale(cuda_kernel, gpu, gpuperf, n):
    kernel = cuda_kernel("scale.cu", "scale")
    a, b = gpu.empty(256), gpu.empty(256)
    gpuperf(kernel.launch(grid=1 + n, block=128, args=(a, b, 256)))
"""


def costs(workloads: int, modules: int) -> tuple[list[float], float]:
    """Milliseconds per workload of each run, and megabytes of JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("", encoding="utf-8")
        (folder / "scale.cu").write_text(KERNEL, encoding="utf-8")
        for number in range(modules):
            text = TEST.format(count=workloads // modules)
            (folder / f"test_module{number}.py").write_text(text, encoding="utf-8")
        environ = {**{key: value for key, value in os.environ.items() if key != "CI"}, "CUDA_VISIBLE_DEVICES": ""}
        found = []
        for _, *flags in RUNS:
            began = time.perf_counter()
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
            subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
            found.append((time.perf_counter() - began) / workloads * 1e3)
        return found, sum(path.stat().st_size for path in (folder / "baselines").rglob("*.json")) / 1e6


def page(workloads: int) -> str:
    rows = []
    for modules in MODULES:
        found, size = costs(workloads, modules)
        rows.append(f"| {modules} | {' | '.join(f'{one:.1f}' for one in found)} | {size:.1f} |")
    return "\n".join([
        "# Many workloads", "", f"By `python benchmarks/many_workloads.py`: {workloads} workloads of one kernel, no "
        "GPU, one process. Milliseconds per workload, pytest's own part included.", "",
        f"| modules | {' | '.join(name for name, *_ in RUNS)} | JSON, MB |", f"|{'---|' * (len(RUNS) + 2)}", *rows, "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=10_000, metavar="N")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there, too")
    parsed = parser.parse_args()
    text = page(parsed.workloads)
    sys.stdout.write(text)
    if parsed.output is not None:
        parsed.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
