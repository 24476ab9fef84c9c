"""Each file of the example suite is short, and each kernel can be understood without the talk."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("file", [*KERNELS, *sorted(SUITE.glob("*.py"))], ids=lambda file: file.name)
def test_a_file_is_short(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.stem)
def test_a_kernel_says_what_it_shows_where_it_comes_from_and_what_to_look_for(kernel: Path) -> None:
    head = head_of(kernel)
    assert any(document in head for document in DOCUMENTS)
    assert re.search(r"In the (machine code|PTX):", head)
    assert len(head) > 500  # what the variants are, and why one is faster
