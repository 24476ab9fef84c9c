"""Each file of the example suite is short, and each kernel can be understood without the talk."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

SUITE = Path(__file__).parents[3] / "example_suite"
KERNELS = sorted((SUITE / "kernels").glob("*.cu"))
MOST_LINES = 250
WIDTH = 120
DOCUMENTS = (
    "CUDA Techniques to Maximize Compute and Instruction Throughput",
    "What the profiler is telling you: optimizing your CUDA application",
    "Five basic performance advice for porting kernels to the GPU",
    '"Optimization" chapter of a CUDA course',
)


def head_of(kernel: Path) -> str:
    """The comment that a kernel's file begins with, in one line."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), kernel.read_text(encoding="utf-8").splitlines())
    return " ".join(line.removeprefix("//").strip() for line in lines)


def test_files_are_short() -> None:
    for file in (*KERNELS, *SUITE.glob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= MOST_LINES, file
        assert max(map(len, lines)) <= WIDTH, file


def test_kernels_say_what_they_show_and_where_they_come_from() -> None:
    for kernel in KERNELS:
        head = head_of(kernel)
        assert any(document in head for document in DOCUMENTS), kernel
        assert re.search(r"In the (machine code|PTX):", head), kernel
        assert len(head) > 500, kernel  # what the variants are, and why one is faster
