"""What a workload costs in suites of one to ten thousand, in one module and in a hundred: recorded, and gated.

    python benchmarks/many_workloads.py > docs/results/many_workloads.md

Without a GPU, one kernel at as many grids.  Seconds are those of the processor, which other work on the machine does
not lengthen by much; the plugin's own are those beyond pytest's for as many empty tests with a fixture.  Exit
status 1 if a gated workload costs more than ``MOST_MS`` of its own, or a run more than ``MOST_MB``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SUITES = ((1_000, 1), (3_000, 1), (10_000, 1), (10_000, 100))
"""Workloads, and modules that they are in."""
MOST_MS, MOST_MB = 1.2, 350.0
PLAIN = """
import pytest

@pytest.fixture
def one():
    yield 1

@pytest.mark.parametrize("n", range({count}))
def test_empty(one, n):
    pass
"""
KERNEL = """
extern "C" __global__ void scale(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] * 2.0f; }
"""
TEST = """
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_scale(cuda_kernel, gpu, gpuperf, n):
    kernel = cuda_kernel("scale.cu", "scale")
    a, b = gpu.empty(256), gpu.empty(256)
    gpuperf(kernel.launch(grid=1 + n, block=128, args=(a, b)))
"""


def run(folder: Path, *flags: str) -> tuple[float, float]:
    """Processor seconds and peak megabytes.  Raises ``CalledProcessError``."""
    environ = {**{key: value for key, value in os.environ.items() if key != "CI"}, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1.024e-3


def costs(workloads: int, modules: int) -> tuple[str, bool]:
    """A row of the table, and whether a gated workload costs too much."""
    with tempfile.TemporaryDirectory() as name:
        folder, empty = Path(name) / "suite", Path(name) / "empty"
        for place, text in ((folder, TEST), (empty, PLAIN)):
            place.mkdir()
            (place / "pytest.ini").write_text("", encoding="utf-8")
            for number in range(modules):
                tests = text.format(count=workloads // modules)
                (place / f"test_module{number}.py").write_text(tests, encoding="utf-8")
        (folder / "scale.cu").write_text(KERNEL, encoding="utf-8")
        plain_s, plain_mb = run(empty, "-p", "no:gpuperf")
        recorded_s, _ = run(folder, "--update-baselines", "--gpuperf-arch=sm_90")
        gated_s, gated_mb = run(folder, "--gpuperf")
        json_mb = sum(path.stat().st_size for path in (folder / "baselines").rglob("*.jsonl")) / 1e6
    plain_ms, recorded_ms, gated_ms = (
        1e3 * one / workloads for one in (plain_s, recorded_s - plain_s, gated_s - plain_s)
    )
    figures = f"{plain_ms:.2f} | {recorded_ms:.2f} | {gated_ms:.2f} | {plain_mb:.0f} | {gated_mb:.0f} | {json_mb:.1f}"
    large = workloads == max(SUITES)[0]  # the start weighs on small ones
    return f"| {workloads:,} | {modules} | {figures} |", large and (gated_ms > MOST_MS or gated_mb > MOST_MB)


PAGE = """\
# Many workloads

Workloads of one kernel, no GPU, one process, by `python benchmarks/many_workloads.py`. Milliseconds of the processor
per workload: pytest's for as many empty tests, and the plugin's beyond them. A start of about a second is in them.

| workloads | modules | pytest, ms | recorded, ms | gated, ms | pytest, MB | gated, MB | JSON, MB |
|---|---|---|---|---|---|---|---|"""


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = [costs(*suite) for suite in SUITES]
    print(PAGE, *(row for row, _ in found), sep="\n")
    return int(any(too_much for _, too_much in found))


if __name__ == "__main__":
    sys.exit(main())
