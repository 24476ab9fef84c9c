"""Kernels that break the GPU, never end or find no memory, each followed by ten healthy tests.

    python benchmarks/faults.py [--output docs/results/faults.md]

Needs a GPU.  Each case is a run of its own, with one worker of pytest-xdist and without: a healthy test, the culprit,
ten tests of one copy kernel.  These must pass with the time that it has before the culprit; without a worker they may
be skipped as not measured, and an endless kernel ends the run.  Exit status 1 if a test fails for another's error, a
culprit passes, a time is off by more than ``TIME_OFF``, or a run does not end, or ends well.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

AFTER = 10
TIMEOUT_S = 5
"""For an endless kernel."""
LIMIT_S = 180.0
"""For a run; beyond it, it hangs."""
TIME_OFF = 0.03
"""Of a healthy test's time against that before the culprit: other addresses and another process make 1 to 2 %."""

SOURCE = r"""
extern "C" __device__ void __assertfail(const char*, const char*, unsigned int, const char*, size_t);

extern "C" __global__ void copy(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i];
}

extern "C" __global__ void wild_address(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i + (1ll << 42)] = a[i];
}

extern "C" __global__ void misaligned(const float* a, float* b, int n)
{
    *reinterpret_cast<double*>(reinterpret_cast<char*>(b) + 4 * threadIdx.x + 1) = a[threadIdx.x];
}

extern "C" __global__ void failed_assert(const float* a, float* b, int n)
{
    if (a[threadIdx.x] >= 0.0f) __assertfail("a[i] < 0", "faults.cu", 1, "failed_assert", 1);
    b[threadIdx.x] = 1.0f;
}

extern "C" __global__ void trap(const float* a, float* b, int n)
{
    if (a[threadIdx.x] >= 0.0f) __trap();
    b[threadIdx.x] = 1.0f;
}

extern "C" __global__ void endless(const float* a, float* b, int n)
{
    while (*static_cast<const volatile float*>(a) >= 0.0f) {}
    b[threadIdx.x] = 1.0f;
}
"""

TESTS = """
import pytest

SIZE = 1 << 24

def copy(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("faults.cu", "copy")
    a = gpu.random(SIZE, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=SIZE // 256, block=256, args=(a, b, SIZE)), check=lambda: gpu.assert_equal(b, a))

def test_before(cuda_kernel, gpu, gpuperf):
    copy(cuda_kernel, gpu, gpuperf)

def test_culprit(cuda_kernel, gpu, gpuperf):
    {culprit}

@pytest.mark.parametrize("number", range({after}))
def test_after(cuda_kernel, gpu, gpuperf, number):
    copy(cuda_kernel, gpu, gpuperf)
"""
LAUNCH = """kernel = cuda_kernel("faults.cu", "{name}")
    a = gpu.random(SIZE, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=64, block=256, args=(a, b, SIZE)))"""
UNSEEN = """import cupy
    kernel = cuda_kernel("faults.cu", "wild_address")
    a = gpu.random(SIZE, seed=1)
    b = gpu.empty_like(a)
    kernel.launch(grid=64, block=256, args=(a, b, SIZE))()"""
MEMORY = """hold = gpu.zeros((gpu.memory_bytes // 2,), "uint8")
    gpu.zeros((gpu.memory_bytes,), "uint8")"""
CASES = {
    "wild address": LAUNCH.format(name="wild_address"),
    "wild address, launched and not waited for": UNSEEN,
    "misaligned address": LAUNCH.format(name="misaligned"),
    "device assert": LAUNCH.format(name="failed_assert"),
    "trap": LAUNCH.format(name="trap"),
    "endless kernel": LAUNCH.format(name="endless"),
    "out of memory": MEMORY,
}


class Seen(NamedTuple):
    """How a run ended."""

    case: str
    workers: int
    status: int | None
    culprit: str
    """Outcome of the culprit's test."""
    words: str
    passed: int
    """Of the tests after it."""
    skipped: int
    """Of them, those not measured."""
    off: float
    """Largest difference of the times of those that passed from that before the culprit."""
    seconds: float

    @property
    def well(self) -> bool:
        if not self.workers and self.culprit == "ended the run":
            return self.status not in (0, None) and bool(self.words)
        settled = self.passed + (0 if self.workers else self.skipped)
        return self.status == 1 and self.culprit == "failed" and settled == AFTER and self.off <= TIME_OFF


def run(case: str, culprit: str, workers: int) -> Seen:
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        (folder / "faults.cu").write_text(SOURCE, encoding="utf-8")
        (folder / "test_faults.py").write_text(TESTS.format(culprit=culprit, after=AFTER), encoding="utf-8")
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        command = [
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gpuperf", "--gpuperf-report=report.json",
            f"--gpuperf-kernel-timeout={TIMEOUT_S}", "-n", str(workers),
        ]  # fmt: skip
        began = time.perf_counter()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                                  env={**os.environ, "CI": ""})  # fmt: skip
        except subprocess.TimeoutExpired:
            return Seen(case, workers, None, "hangs", "", 0, 0, 1.0, LIMIT_S)
        seconds = time.perf_counter() - began
        said = done.stdout + done.stderr
        print(said[-4000:], flush=True)
        words = next((line for line in said.splitlines() if any(one in line for one in SAYS)), "")
        if not (folder / "outcomes.txt").exists():
            return Seen(case, workers, done.returncode, "ended the run", words, 0, 0, 0.0, seconds)
        outcomes = dict(line.split("\t") for line in (folder / "outcomes.txt").read_text(encoding="utf-8").splitlines())
        tests = json.loads((folder / "report.json").read_text(encoding="utf-8"))["tests"]
    times = {
        one["test"]: statistics.fmean(rounds["midmean"] for rounds in work["time"]["rounds"])
        for one in tests for work in one.get("workloads", ()) if work.get("time")
    }  # fmt: skip
    ends = [outcomes.get(f"test_after[{number}]") for number in range(AFTER)]
    off = [abs(times.get(f"test_after[{number}]", float("inf")) / times.get("test_before", float("nan")) - 1)
           for number, end in enumerate(ends) if end == "passed"]  # fmt: skip
    culprits = outcomes.get("test_culprit", "none")
    return Seen(case, workers, done.returncode, culprits, words, ends.count("passed"), ends.count("skipped"),
                max(off, default=0.0), seconds)  # fmt: skip


SAYS = (
    "after this test the GPU was lost",
    "a kernel faulted on the GPU",
    "nothing came back from the GPU",
    "Out of memory allocating",
)
CONFTEST = """
import pathlib

def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput"):
        return
    ends = {}
    for kind in ("passed", "failed", "error", "skipped"):
        for report in reporter.stats.get(kind, []):
            ends[report.nodeid.rpartition("::")[2]] = kind
    lines = [f"{name}\\t{kind}\\n" for name, kind in ends.items()]
    pathlib.Path("outcomes.txt").write_text("".join(lines), encoding="utf-8")
"""


def table(rows: Sequence[Seen]) -> str:
    lines = [
        "# Kernels that break the GPU",
        "",
        f"Each case is one run on a GPU: a healthy test, the culprit, and {AFTER} tests of one copy of 64 MiB, by",
        "`python benchmarks/faults.py`. The last column is the largest difference of the times of those that passed",
        "from the time before the culprit.",
        "",
        "| case | workers | run | exit status | the culprit | it says | passed after it | not measured | their times |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        lines.append(
            f"| {one.case} | {one.workers} | {one.seconds:.1f} s | {one.status} | {one.culprit} | {one.words} "
            f"| {one.passed} of {AFTER} | {one.skipped} | {one.off:.2%} |"
        )
    lines = [line.replace("%", " %") for line in lines]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    rows = [run(case, culprit, workers) for workers in (1, 0) for case, culprit in CASES.items()]
    text = table(rows)
    print(text)
    if given.output is not None:
        given.output.write_text(text, encoding="utf-8")
    return 0 if all(one.well for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
