"""Compare a branch with its base where there is neither a GPU nor a baseline: seconds, and kernels compiled.

    python benchmarks/against_revision.py --output docs/results/against_revision.md

Makes a repository with 60 kernels whose branch changes one of them so that it spills, and runs
``pytest --gpuperf --gpuperf-against=main`` with a compile cache that knows the base, with an empty one, and once more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

KERNELS = 60
ROOT = Path(__file__).resolve().parents[1]
KERNEL = """\
extern "C" __global__ void kernel_{n}(const float* in, float* out)
{{
    float kept[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) kept[i] = in[threadIdx.x + {n} + 32 * i];
    float sum = {n}.0f;
#pragma unroll
    for (int i = 0; i < 48; ++i) sum = sum * 0.5f + kept[i];
#pragma unroll
    for (int i = 47; i >= 0; --i) sum = sum * 0.25f + kept[i] * sum;
    out[threadIdx.x] = sum;
}}
"""
TEST = """\
def test_kernel_{n}(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("kernel_{n}.cu", "kernel_{n}", options={options})
    array = gpu.random(4096, seed={n})
    gpuperf(kernel.launch(grid=132, block=32, args=(array, gpu.empty_like(array))))
"""
SPILLS = "['-maxrregcount=24']"
COUNTER = """\
import os
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    from pytest_gpuperf.compile import compiler
    compile_cubin = compiler.compile_cubin

    def counted(program, arch):
        with open(os.environ["COMPILED"], "a") as file:
            file.write(f"{program.file} {arch}\\n")
        return compile_cubin(program, arch)

    compiler.compile_cubin = counted
"""
"""A conftest that notes what is compiled."""


class Seen(NamedTuple):
    """One run."""

    seconds: float
    compiled: int
    status: int
    printed: str


def repository(folder: Path) -> None:
    """``main`` with all kernels as they should be, and the branch ``change``, checked out, with one that spills."""
    folder.mkdir()
    for n in range(KERNELS):
        (folder / f"kernel_{n}.cu").write_text(KERNEL.format(n=n), encoding="utf-8")
        (folder / f"test_{n}.py").write_text(TEST.format(n=n, options="[]"), encoding="utf-8")
    (folder / "conftest.py").write_text(COUNTER, encoding="utf-8")
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    _git(folder, "init", "-q", "-b", "main")
    _commit(folder)
    _git(folder, "checkout", "-q", "-b", "change")
    (folder / "test_7.py").write_text(TEST.format(n=7, options=SPILLS), encoding="utf-8")
    _commit(folder)


def run(folder: Path, cache: Path, archs: str) -> Seen:
    """Compare the branch with ``main`` by a fresh process."""
    compiled = folder.parent / "compiled"
    compiled.write_text("", encoding="utf-8")
    environment = {
        **os.environ, "CUDA_VISIBLE_DEVICES": "", "GPUPERF_CACHE_DIR": str(cache), "COMPILED": str(compiled),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--gpuperf", "--gpuperf-against=main",
               f"--gpuperf-arch={archs}"]  # fmt: skip
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    return Seen(seconds, len(compiled.read_text().splitlines()), done.returncode, done.stdout + done.stderr)


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "state")


PAGE = """\
# Comparing with a branch, without a GPU and without baselines

A repository with {kernels} kernels for {archs}, and a branch in which one of them spills. Made on {cores} cores by

    python benchmarks/against_revision.py --output docs/results/against_revision.md

| compile cache | seconds, the run of both sides whole | kernels compiled | exit status |
|---|---|---|---|
{rows}
What the failing test says:

{said}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="MD", help="the page to write")
    parser.add_argument("--archs", default="sm_90", help="architectures (default sm_90)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        repository(folder)
        warm, empty = Path(name) / "warm", Path(name) / "empty"
        _git(folder, "checkout", "-q", "main")
        run(folder, warm, chosen.archs)
        _git(folder, "checkout", "-q", "change")
        cases = {"knows main": run(folder, warm, chosen.archs), "empty": run(folder, empty, chosen.archs),
                 "knows both": run(folder, warm, chosen.archs)}  # fmt: skip
    rows = "".join(
        f"| {cache} | {seen.seconds:.2f} | {seen.compiled} | {seen.status} |\n" for cache, seen in cases.items()
    )
    printed = cases["knows main"].printed
    message = re.search(r"^kernel_7  WORSE.*?^Compared with.*?$", printed, re.DOTALL | re.MULTILINE)
    text = message[0] if message else printed
    said = "\n".join(f"    {line}".rstrip() for line in text.splitlines())
    page = PAGE.format(kernels=KERNELS, archs=chosen.archs, cores=os.cpu_count(), rows=rows, said=said)
    print(page)
    if chosen.output is not None:
        chosen.output.write_text(page, encoding="utf-8")
    archs = len(chosen.archs.split(","))
    right = all(seen.status == 1 for seen in cases.values()) and message is not None
    once = [seen.compiled for seen in cases.values()] == [archs, (KERNELS + 1) * archs, 0]
    return 0 if right and once else 1


if __name__ == "__main__":
    sys.exit(main())
