"""Kernels that break the GPU, never end or find no memory, each followed by ten healthy tests.

    python benchmarks/faults.py > faults.md

Needs a GPU.  Each case is a run of its own, with one worker of pytest-xdist and without: a healthy test, the culprit,
ten tests of one copy kernel.  These must pass with the time before the culprit; without a worker they may be skipped as
not measured, and an endless kernel ends the run.  Exit status 1 if a test fails for another's error, a culprit passes,
a time is off by more than ``TIME_OFF``, or a run does not end, or ends well.
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
from pathlib import Path
from xml.etree import ElementTree

AFTER, ENDS = 10, ("failure", "error", "skipped")
TIMEOUT_S, LIMIT_S = 5, 180.0
"""For an endless kernel, and for a run; beyond it, it hangs."""
TIME_OFF = 0.03
"""Of a healthy test's time against that before the culprit: other addresses and another process make 1 to 2 %."""

SOURCE = r"""
#define KERNEL(name) extern "C" __global__ void name(const float* a, float* b, int n)
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL(copy) { if (AT < n) b[AT] = a[AT]; }
KERNEL(wild_address) { b[AT + (1ll << 42)] = a[AT]; }
KERNEL(trap) { if (a[threadIdx.x] >= 0.0f) __trap(); b[threadIdx.x] = 1.0f; }
KERNEL(endless) { while (*static_cast<const volatile float*>(a) >= 0.0f) {} b[threadIdx.x] = 1.0f; }
"""
TESTS = """
import pytest

SIZE = 1 << 24

def launch(cuda_kernel, gpu, name, grid=64):
    a = gpu.random(SIZE, seed=1)
    b = gpu.empty_like(a)
    kernel = cuda_kernel("faults.cu", name)
    return kernel.launch(grid=grid, block=256, args=(a, b, SIZE)), lambda: gpu.assert_equal(b, a)

def measure_copy(cuda_kernel, gpu, gpuperf):
    copy, check = launch(cuda_kernel, gpu, "copy", SIZE // 256)
    gpuperf(copy, check=check)

def test_before(cuda_kernel, gpu, gpuperf):
    measure_copy(cuda_kernel, gpu, gpuperf)

def test_culprit(cuda_kernel, gpu, gpuperf):
    {culprit}

@pytest.mark.parametrize("number", range({after}))
def test_after(cuda_kernel, gpu, gpuperf, number):
    measure_copy(cuda_kernel, gpu, gpuperf)
"""
LAUNCH = 'launch(cuda_kernel, gpu, "{}")[0]'
CASES = {
    "wild address": f"gpuperf({LAUNCH.format('wild_address')})",
    "wild address, launched and not waited for": f"{LAUNCH.format('wild_address')}()",
    "trap": f"gpuperf({LAUNCH.format('trap')})",
    "endless kernel": f"gpuperf({LAUNCH.format('endless')})",
    "out of memory": 'hold = gpu.zeros((gpu.memory_bytes // 2,), "uint8"); gpu.zeros((gpu.memory_bytes,), "uint8")',
}
SAYS = ("after this test the GPU was lost", "a kernel faulted on the GPU", "the GPU did not answer for",
        "Out of memory allocating")  # fmt: skip
PAGE = f"""\
# Kernels that break the GPU

Each case is one run on a GPU: a healthy test, the culprit, and {AFTER} tests of one copy of 64 MiB, by
`python benchmarks/faults.py`. The last column is the largest difference of the times of those that passed from the time
before the culprit.

| case | workers | run | exit status | the culprit | message | passed after it | not measured | their times |
|---|---|---|---|---|---|---|---|---|"""


def outcomes_in(folder: Path) -> dict[str, str]:
    """Of each test, from JUnit's XML; empty where pytest left none."""
    if not (folder / "junit.xml").exists():
        return {}
    cases = ElementTree.parse(folder / "junit.xml").getroot().iter("testcase")
    return {case.attrib["name"]: next((child.tag for child in case if child.tag in ENDS), "passed") for case in cases}


def run(case: str, workers: int) -> tuple[str, bool]:
    """A row of the table, and whether the run ended as it should."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        (folder / "faults.cu").write_text(SOURCE, encoding="utf-8")
        (folder / "test_faults.py").write_text(TESTS.format(culprit=CASES[case], after=AFTER), encoding="utf-8")
        command = [
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gpuperf", "--gpuperf-report=report.json",
            "--junitxml=junit.xml", f"--gpuperf-kernel-timeout={TIMEOUT_S}", "-n", str(workers),
        ]  # fmt: skip
        began = time.perf_counter()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                                  env={**os.environ, "CI": ""})  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"| {case} | {workers} | {LIMIT_S:.0f} s | | hangs | | | | |", False
        seconds, printed, outcomes = time.perf_counter() - began, done.stdout + done.stderr, outcomes_in(folder)
        report = folder / "report.json"
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"] if report.exists() else []
    print(printed[-4000:], file=sys.stderr, flush=True)
    message = next((line for line in printed.splitlines() if any(one in line for one in SAYS)), "")
    times = {
        one["test"]: statistics.fmean(work["time"]["rounds"])
        for one in tests for work in one.get("workloads", ()) if work.get("time")
    }  # fmt: skip
    after = [name for name in outcomes if name.startswith("test_after")]
    passed, skipped = ([name for name in after if outcomes[name] == end] for end in ("passed", "skipped"))
    off = max((abs(times.get(name, 9e9) / times.get("test_before", 1) - 1) for name in passed), default=0.0)
    culprit = outcomes.get("test_culprit", "ended the run")
    settled = len(passed) + (0 if workers else len(skipped))
    well = done.returncode == 1 and culprit == "failure" and settled == AFTER and off <= TIME_OFF
    if not workers and culprit == "ended the run":
        well = done.returncode != 0 and bool(message)
    return (f"| {case} | {workers} | {seconds:.1f} s | {done.returncode} | {culprit} | {message} | "
            f"{len(passed)} of {AFTER} | {len(skipped)} | {100 * off:.2f} % |", well)  # fmt: skip


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = [run(case, workers) for workers in (1, 0) for case in CASES]
    print(PAGE, *(row for row, _ in found), sep="\n")
    return int(not all(well for _, well in found))


if __name__ == "__main__":
    sys.exit(main())
