"""What a second and a fourth GPU save, simulated: devices that are busy for a second per test, and a lock each.

    python benchmarks/many_gpus.py [--output docs/results/many_gpus.md]

Needs no GPU.  Who takes a simulated GPU waits for a second; whatever else a worker of pytest-xdist does is real.
Exit status 1 if two GPUs are not 1.85 times as fast as one, or a verdict depends on their number.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TESTS = 32
BUSY_S = 1.0
GPUS = (1, 2, 4)
LEAST = 1.85
"""Times as fast with two."""

SUITE = """
import pytest

SOURCE = '''
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) x = x * 1.5f + a[i];
    if (i < n) b[i] = x;
}
'''

@pytest.mark.parametrize("number", range(TESTS))
def test_work(cuda_kernel, gpu, gpuperf, number):
    kernel = cuda_kernel(SOURCE, "work", options=[f"-DSTEPS={100 + SLOWER * (number % 8 == 0)}"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))
"""
CONFTEST = f"""
import contextlib
import fcntl
import sys
import time
sys.path[:0] = [{str(ROOT / "tests")!r}, {str(ROOT / "tests" / "plugin")!r}]
import pytest
from simulated_gpu import SimulatedGpu

def work(a, b, n):
    b[:] = a

class Busy(SimulatedGpu):
    held = 0

    @contextlib.contextmanager
    def lock(self):
        with contextlib.ExitStack() as stack:
            if not self.held:
                file = stack.enter_context(open(f"{{self.facts.uuid}}.lock", "w"))
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep({BUSY_S})
            self.held += 1
            try:
                yield
            finally:
                self.held -= 1

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return Busy(implementations={{"work": work}}, uuid=f"GPU-{{(worker or 0) % 8}}")
"""


class Seen(NamedTuple):
    """A run on so many GPUs."""

    gpus: int
    seconds: float
    verdicts: tuple[tuple[str, str], ...]
    """By test."""


def run(folder: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--gpuperf-budget=1", *arguments]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env={**os.environ, "CI": ""}, capture_output=True, check=False)
    return time.perf_counter() - began


def gate(folder: Path, gpus: int) -> Seen:
    more = ("-n", str(gpus), "--dist", "load")
    seconds = run(folder, "--gpuperf", "--gpuperf-report=report.json", *more)
    tests = json.loads((folder / "report.json").read_text(encoding="utf-8"))["tests"]
    found = [
        (test["test"], one["verdict"]) for test in tests for work in test.get("workloads", ())
        for one in work.get("judgements", ()) if one.get("kind", "time") == "time"
    ]  # fmt: skip
    return Seen(gpus, seconds, tuple(sorted(found)))


def table(rows: Sequence[Seen]) -> str:
    lines = [
        "# Many GPUs, simulated",
        "",
        f"{TESTS} tests, four of them slower, on GPUs that each take {BUSY_S:g} s of whoever locks them, beside",
        "what a verdict takes: `python benchmarks/many_gpus.py`. Real are pytest-xdist, compiling, judging, second",
        "processes and the two cores that all workers share.",
        "",
        "| GPUs | seconds | times as fast | SLOWER | UNCHANGED |",
        "|---|---|---|---|---|",
    ]
    for one in rows:
        words = [verdict for _, verdict in one.verdicts]
        ratio = rows[0].seconds / one.seconds
        lines.append(
            f"| {one.gpus} | {one.seconds:.1f} | {ratio:.2f} | {words.count('SLOWER')} | {words.count('UNCHANGED')} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="many-gpus-") as name:
        folder = Path(name)
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        suite = SUITE.replace("TESTS", str(TESTS))
        (folder / "test_work.py").write_text(suite.replace("SLOWER", "0"), encoding="utf-8")
        run(folder, "--update-baselines=all", "--gpuperf-rounds=4", "--gpuperf-processes=2", "--gpuperf-force-update")
        (folder / "test_work.py").write_text(suite.replace("SLOWER", "8"), encoding="utf-8")
        rows = [gate(folder, gpus) for gpus in GPUS]
    text = table(rows)
    print(text)
    if given.output is not None:
        given.output.write_text(text, encoding="utf-8")
    same = len({one.verdicts for one in rows}) == 1
    return 0 if same and rows[0].seconds / rows[1].seconds >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
