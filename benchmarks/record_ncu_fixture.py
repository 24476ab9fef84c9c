"""Record a small report of Nsight Compute for the tests of its reader, and ncu's own reading of it.

    python benchmarks/record_ncu_fixture.py [--to FOLDER] [--set full]

Needs a GPU, ncu and the right to read counters.  A few kernels of the example suite, on grids small enough for
the report to stay below 400 KB, are profiled just as ``--gpuperf-ncu`` does it.  The expected figures are
what ``ncu --import ... --page raw --csv --print-units base`` prints of the same report: a second reading that
shares no code with the plugin's.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_gpuperf.counters.catalogue import chip_of, names_of, on_chip
from pytest_gpuperf.counters.exchange import entries
from pytest_gpuperf.counters.run_ncu import LOG, REPORT, Ncu, command, environment, find_ncu
from pytest_gpuperf.model.task import ProfileTask, flag_of

ROOT = Path(__file__).parent.parent
MOST_BYTES = 40_000
FIGURE = re.compile(r"-?\d+(\.\d+)?")
TESTS = """
def test_transpose(cuda_kernel, gpu, gpuperf):
    src = gpu.random((64, 32, 32), seed=1)
    for name in ("transpose_naive", "transpose_coalesced", "transpose_padded"):
        kernel = cuda_kernel(KERNELS + "transpose32.cu", name)
        dst = gpu.empty_like(src)
        gpuperf(kernel.launch(grid=(64,), block=(32, 32), args=(src, dst)), name=name,
                check=lambda: gpu.assert_equal(dst, src.swapaxes(1, 2)))

def test_reduction(cuda_kernel, gpu, gpuperf):
    given, partial = gpu.random(64 * 256, seed=2), gpu.zeros(64)
    kernel = cuda_kernel(KERNELS + "reduce_sum.cu", "reduce_tree")
    gpuperf(kernel.launch(grid=(64,), block=(256,), args=(given, partial, given.size)))

def test_spills(cuda_kernel, gpu, gpuperf):
    given, out = gpu.random((64, 1024), seed=3), gpu.zeros(1024)
    kernel = cuda_kernel(KERNELS + "occupancy_registers.cu", "two_passes", name_expression="two_passes<float, 64>",
                         options=["-maxrregcount=32"])
    gpuperf(kernel.launch(grid=(8,), block=(128,), args=(given, out, out.size)))

def test_two_kernels(cuda_kernel, gpu, gpuperf):
    given, partial, total = gpu.random(64 * 256, seed=4), gpu.zeros(64), gpu.zeros(1)
    kernel = cuda_kernel(KERNELS + "reduce_sum.cu", "reduce_shfl")
    first = kernel.launch(grid=(64,), block=(256,), args=(given, partial, given.size))
    second = kernel.launch(grid=(1,), block=(256,), args=(partial, total, partial.size))
    gpuperf(lambda: (first(), second()), name="both")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=ROOT / "tests" / "unit" / "counters" / "fixtures")
    parser.add_argument("--set", default="full", help="of metrics, as --gpuperf-ncu takes it")
    given = parser.parse_args()
    ncu = find_ncu()
    with tempfile.TemporaryDirectory(prefix="gpuperf-fixture-") as name:
        folder = Path(name)
        kernels = record(ncu, folder, tuple(given.set.split(",")))
        target = given.to / f"{entries(folder)[0].gpu}.ncu-rep.xz"
        target.write_bytes(lzma.compress(without_own_path((folder / REPORT).read_bytes())))
    figures = json.dumps({"ncu": str(ncu), "kernels": kernels}, indent=1) + "\n"
    target.with_suffix("").with_suffix(".json").write_text(figures)
    size = target.stat().st_size
    print(f"{target}: {size} bytes, at most {MOST_BYTES}, {len(kernels)} kernels, {len(kernels[0]['metrics'])} metrics")
    return int(size > MOST_BYTES)


def without_own_path(report: bytes) -> bytes:
    """With a path of the same length in the place of this Python's, which the report quotes; nothing else moves."""
    own = sys.prefix.encode()
    return report.replace(own, (b"/usr/" + b"x" * len(own))[: len(own)])


def record(ncu: Ncu, folder: Path, asked: tuple[str, ...]) -> list[dict[str, Any]]:
    """Profile the tests, and read the report by ncu: an entry for each kernel; the last workload has two."""
    module = folder / "test_fixture.py"
    module.write_text(f"KERNELS = {str(ROOT / 'example_suite' / 'kernels')!r} + '/'\n{TESTS}", encoding="utf-8")
    tests = re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)
    nodes, names = tuple(f"test_fixture.py::{test}" for test in tests), names_of(asked)
    task = flag_of(ProfileTask(folder=folder, nodes=nodes, cache="cold", metrics=names))
    compute = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", "--id=0"]
    chip = chip_of(f"sm_{subprocess.check_output(compute, text=True).strip().replace('.', '')}")
    own = [here for name in names if (here := on_chip(name, chip))]
    target = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}",
              task, str(module)]  # fmt: skip
    done = subprocess.run(command(ncu.path, folder, own, "cold", target), cwd=folder, check=False,
                          env=environment(folder))  # fmt: skip
    if not (folder / REPORT).exists():
        raise SystemExit(f"ncu left no report (exit status {done.returncode}):\n{(folder / LOG).read_text()}")
    reading = [str(ncu.path), "--config-file", "off", "--import", str(folder / REPORT), "--page", "raw", "--csv",
               "--print-units", "base"]  # fmt: skip
    numbers = [entry.number for entry in entries(folder) if entry.number is not None]
    return as_kernels(subprocess.check_output(reading, text=True), own, [*numbers, numbers[-1]])


def as_kernels(printed: str, names: list[str], ranges: list[int]) -> list[dict[str, Any]]:
    """ncu's table: a line of headings, a line of units, a line per kernel; other output may come before it."""
    rows = list(csv.DictReader(io.StringIO(printed[printed.index('"ID"') :])))[1:]
    if len(rows) != len(ranges):
        raise SystemExit(f"ncu prints {len(rows)} kernels, and {len(ranges)} were launched")
    found = []
    for row, number in zip(rows, ranges, strict=True):
        figures = {name: (row.get(name) or "").replace(",", "") for name in names}
        kernel = re.split(r"[(<]", row["Kernel Name"])[0].removeprefix("void ").strip()
        metrics = {name: figure for name, figure in figures.items() if FIGURE.fullmatch(figure)}
        found.append({"kernel": kernel, "range": number, "metrics": metrics})
    return found


if __name__ == "__main__":
    sys.exit(main())
