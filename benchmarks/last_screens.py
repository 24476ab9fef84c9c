"""What a person sees of a run of 524 workloads and of one of 10,000: all green, a bad header, one bad kernel.

    python benchmarks/last_screens.py [--workloads 524 10000] [--keep FOLDER] [--output docs/results/last_screen.md]

Needs tmux, whose pane is the terminal: of 100 and 60 columns, and for the larger suite of 100.  Without a GPU: what is
judged is machine code.  Test modules have 64 sizes of one kernel each; all kernels take a function from one header.
Lines are counted as they are printed, rows as the terminal wraps them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

WIDTHS = (100, 60)
SIZES = 64
STATES = {"green": 25, "one bad header": 60, "one bad kernel": 60}
"""What is wrong with the suite, and the most lines that may say so."""
GOOD = "{ return x * f; }"
BAD = "{ float t[64]; for (int i = 0; i < 64; ++i) t[i] = x * i; t[(int)(x + f) & 63] = x; return t[(int)x & 63]; }"
HEADER = "__device__ inline float step(float x, float f) %s\n"
KERNEL = """#include "common.cuh"
%sextern "C" __global__ void work%d(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = %s(a[i], %d.5f);
}
"""
TEST = """import pytest

@pytest.mark.parametrize("size", range(1024, 1024 * {sizes} + 1, 1024))
def test_scale{number}(cuda_kernel, gpu, gpuperf, size):
    a, b = gpu.random(size, seed=1), gpu.empty(size)
    kernel = cuda_kernel("work{number}.cu", "work{number}")
    gpuperf(kernel.launch(grid=((size + 255) // 256,), block=256, args=(a, b, size)))
"""
SHOWN = 524
"""The size of the suite whose screens the page has."""
SCREENS = (("green", 100), ("one bad header", 100), ("one bad kernel", 60))
INTRODUCTION = """# The last screen of a run

By `python benchmarks/last_screens.py`, in panes of tmux. All that pytest prints is counted, its own lines included:
*lines* as they are printed, *rows* as the terminal wraps them. No GPU: machine code is what is judged. Modules have 64
sizes of one kernel each. The bad header makes every kernel hold an array in local memory; the bad kernel does so alone.

| workloads | state | columns | lines | at most | rows | messages | Markdown, characters |
|---|---|---|---|---|---|---|---|
"""


class Seen(NamedTuple):
    """One run, as the terminal has it."""

    workloads: int
    state: str
    width: int
    text: str
    lines: int
    markdown: str

    @property
    def rows(self) -> int:
        return len(self.text.splitlines())

    @property
    def messages(self) -> int:
        """Failures that are told one by one."""
        return len(re.findall(r"^_+ test_.* _+$", self.text, re.MULTILINE))


def build(folder: Path, workloads: int) -> None:
    """Write a suite of so many workloads, none of them bad, and record it."""
    (folder / "pytest.ini").write_text("", encoding="utf-8")
    for number, first in enumerate(range(0, workloads, SIZES)):
        sizes = min(SIZES, workloads - first)
        (folder / f"test_scale{number}.py").write_text(TEST.format(sizes=sizes, number=number), encoding="utf-8")
        (folder / f"work{number}.cu").write_text(KERNEL % ("", number, "step", number), encoding="utf-8")
    (folder / "common.cuh").write_text(HEADER % GOOD, encoding="utf-8")
    command = [*pytest_command(), "-q", "--update-baselines", "--gpuperf-arch=sm_90"]
    subprocess.run(command, cwd=folder, env=environ(), check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def spoilt(folder: Path, state: str) -> Iterator[None]:
    """The suite in one of ``STATES``; as it was behind it."""
    header, kernel = folder / "common.cuh", folder / "work3.cu"
    good = {path: path.read_text(encoding="utf-8") for path in (header, kernel)}
    if state == "one bad header":
        header.write_text(HEADER % BAD, encoding="utf-8")
    elif state == "one bad kernel":
        own = (HEADER % BAD).replace("step", "own")
        kernel.write_text(KERNEL % (own, 3, "own", 3), encoding="utf-8")
    try:
        yield
    finally:
        for path, text in good.items():
            path.write_text(text, encoding="utf-8")


def pytest_command() -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def environ() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "COLUMNS", "LINES", "TMUX")}
    return {**kept, "CUDA_VISIBLE_DEVICES": ""}


def screen(folder: Path, width: int, name: str, *flags: str) -> tuple[str, int]:
    """All that a run leaves on a terminal of so many columns, and the number of its lines before they are wrapped.

    ``name`` is that of the terminal's server, one for each run.
    """
    command = shlex.join([*pytest_command(), "--gpuperf", *flags])
    tmux = ["tmux", "-L", f"gpuperf-{os.getpid()}-{name}"]
    script = f"{command}; {shlex.join([*tmux, 'wait-for', '-S', 'done'])}; sleep 60"
    start = [*tmux, "-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", "2000", script]
    subprocess.run(start, cwd=folder, env=environ(), check=True)
    try:
        subprocess.run([*tmux, "wait-for", "done"], check=True)
        seen = [
            subprocess.run([*tmux, "capture-pane", "-p", *more], check=True, capture_output=True, text=True).stdout
            for more in ([], ["-J"])
        ]
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    where = re.compile(r"\n?".join(map(re.escape, str(folder))))  # the terminal may have wrapped it
    return where.sub("/suite", seen[0].rstrip()) + "\n", len(seen[1].rstrip().splitlines())


def runs(folder: Path, workloads: int) -> Iterator[Seen]:
    build(folder, workloads)
    for state in STATES:
        with spoilt(folder, state):
            for width in WIDTHS if workloads <= SHOWN else WIDTHS[:1]:
                report = folder / f"{state.replace(' ', '_')}.md"
                text, lines = screen(folder, width, f"{report.stem}-{width}", f"--gpuperf-report={report}")
                yield Seen(workloads, state, width, text, lines, report.read_text(encoding="utf-8"))


def page(seen: Sequence[Seen]) -> str:
    rows = [
        f"| {one.workloads:,} | {one.state} | {one.width} | {one.lines} | {STATES[one.state]} | {one.rows} | "
        f"{one.messages} | {len(one.markdown):,} |" for one in seen
    ]  # fmt: skip
    parts = [INTRODUCTION + "\n".join(rows), ""]
    for one in seen:
        if one.workloads == SHOWN and (one.state, one.width) in SCREENS:
            head = f"## {one.workloads} workloads, {one.state}, {one.width} columns"
            parts += [head, "", "```text", *(line.rstrip() for line in one.text.splitlines()), "```", ""]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, nargs="+", default=[SHOWN, 10_000], metavar="N")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave screens and Markdown there, too")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there, too")
    parsed = parser.parse_args()
    seen = []
    for workloads in parsed.workloads:
        with tempfile.TemporaryDirectory() as name:
            for one in runs(Path(name), workloads):
                seen.append(one)
                if parsed.keep is not None:
                    stem = f"{one.workloads}_{one.state.replace(' ', '_')}_{one.width}"
                    (parsed.keep / f"{stem}.txt").write_text(one.text, encoding="utf-8")
                    (parsed.keep / f"{stem}.md").write_text(one.markdown, encoding="utf-8")
    text = page(seen)
    sys.stdout.write(text)
    if parsed.output is not None:
        parsed.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
