"""compute-sanitizer over the example suite: memcheck over all tests, racecheck and synccheck over shared memory.

    python benchmarks/sanitize.py --to DIR [--only TOOL] [--sanitizer PATH] [--files test_NAME.py...]

Needs a GPU, CuPy and compute-sanitizer.  Each tool first has to report a kernel that is wrong in its way.  The logs and
the output of all processes stay in DIR.  Prints the table of ``docs/results/sanitizer.md``.  Exit status 1 if a tool
reports an error, has an internal error, does not end, or does not report the wrong kernel, or if a test fails under it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.baselines.store import BaselineStore

HERE = Path(__file__).resolve().parent
ROOT, SUITE, ARCH = HERE.parent, "example_suite", "sm_90"
PROCESSES = {"memcheck": 6, "racecheck": 1, "synccheck": 1}
"""One memcheck over the whole suite runs out of an H200's memory."""
BY_THE_CLOCK = (
    "test_hardware_facts.py::test_lanes_of_an_sm",
    "test_hardware_facts.py::test_what_a_load_costs",
    "test_latency_hiding_chart.py::test_warps_or_chains_keep_a_scheduler_busy",
)  # fmt: skip
"""Tests that read the SM's clock, which a tool slows down: they are left out."""
WRONG = {
    "memcheck": "out[1024 + threadIdx.x] = 1.0f;",
    "racecheck": "__shared__ float v[64]; v[threadIdx.x] = out[threadIdx.x]; out[threadIdx.x] = v[63 - threadIdx.x];",
    "synccheck": "if (threadIdx.x % 32 < 16) __syncthreads(); out[threadIdx.x] = 1.0f;",
}
CONTROL = """
import cupy
cupy.cuda.set_allocator(None)
kernel = cupy.RawKernel('extern "C" __global__ void wrong(float* out) {{ {} }}', "wrong")
kernel((1,), (64,), (cupy.zeros(64, dtype="float32"),))
cupy.cuda.runtime.deviceSynchronize()
"""
SUMMARY = re.compile(r"=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")
INTERNAL = re.compile(r"Internal (?:Sanitizer|Memcheck|Racecheck|Synccheck) Error")


def pytest_configure() -> None:
    """As a plugin: an allocation for each array.  In CuPy's pool memcheck sees no end of an array."""
    import cupy

    cupy.cuda.set_allocator(None)


def watch(given: argparse.Namespace, name: str, target: Sequence[str]) -> tuple[int | None, int]:
    """Errors, None without an end or where a test failed, and internal errors, of which the tool loses track."""
    log = given.to / f"{name}.log"
    log.unlink(missing_ok=True)
    tool = f"--tool={name.partition('-')[0]}"
    command = [given.sanitizer, tool, "--target-processes=application-only", "--report-api-errors=no",
               f"--log-file={log}", sys.executable, *target]  # fmt: skip
    paths = os.pathsep.join([str(HERE), str(ROOT), os.environ.get("PYTHONPATH", "")])
    with log.with_suffix(".out").open("wb") as printed:
        try:
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=printed,
                                  stderr=subprocess.STDOUT, timeout=given.limit, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, 0
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    counts = SUMMARY.findall(text) if name.endswith("control") or not done.returncode else []
    return int(counts[-1]) if counts else None, len(INTERNAL.findall(text))


def tests_of(tool: str, files: Sequence[str]) -> list[str]:
    """Test files for memcheck; else the tests whose kernels have shared memory, small ones where there are such."""
    if tool == "memcheck":
        return [f"{SUITE}/{file}" for file in files]
    store, by_kernel = BaselineStore(ROOT / "baselines"), dict[str, dict[bool, list[str]]]()
    for module in (f"{SUITE}/{file}" for file in files):
        for (key, _), record in store.load(ARCH, module).items():
            if record.profile.shared_bytes + record.dynamic_shared_bytes:
                of = by_kernel.setdefault(record.kernel, {True: [], False: []})
                of[record.block is None].append(key.node_id)
    return sorted({test for of in by_kernel.values() for test in of[True] or of[False]})


def row(given: argparse.Namespace, tool: str) -> tuple[str, bool]:
    """A row of the table, and whether the tool has nothing to report."""
    control = watch(given, f"{tool}-control", ["-c", CONTROL.format(WRONG[tool])])
    began, tests = time.monotonic(), tests_of(tool, given.files)
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitize"]
    options += [f"--deselect={SUITE}/{test}" for test in BY_THE_CLOCK]
    shares = [share for first in range(PROCESSES[tool]) if (share := tests[first :: PROCESSES[tool]])]
    found = [watch(given, f"{tool}-{number}", [*options, *share]) for number, share in enumerate(shares, 1)]
    errors = None if any(of is None for of, _ in found) else sum(errors or 0 for errors, _ in found)
    internal = sum(of for _, of in (control, *found))
    cells = (tool, len(shares), "not all ended well: see the .out files" if errors is None else errors, internal,
             f"{control[0] or 0} reported", f"{time.monotonic() - began:.0f}")  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |", errors == 0 and not internal and bool(control[0])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = sorted(file.name for file in (ROOT / SUITE).glob("test_*.py"))
    parser.add_argument("--to", type=lambda text: Path(text).absolute(), required=True, metavar="DIR")
    parser.add_argument("--only", choices=PROCESSES)
    parser.add_argument("--sanitizer", default="compute-sanitizer", metavar="PATH")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="for each process")
    parser.add_argument("--files", nargs="+", default=every, metavar="FILE", help="of the suite (default: all)")
    given = parser.parse_args(arguments)
    given.to.mkdir(parents=True, exist_ok=True)
    print("| tool | processes | errors | internal errors | of a wrong kernel | seconds |\n|---|---|---|---|---|---|")
    found = [row(given, tool) for tool in PROCESSES if given.only in (None, tool)]
    print(*(line for line, _ in found), sep="\n")
    return int(not all(clean for _, clean in found))


if __name__ == "__main__":
    sys.exit(main())
