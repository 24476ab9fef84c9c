"""What a reviewer reads of an edit: lines of baselines that change with it, and what ``gpuperf diff`` says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import FILES, HOG, Command, Suite, with_baselines

ARCHS = "--gpuperf-arch=sm_80,sm_90,sm_120"
RECORDS = 3
"""Files of records, one an architecture."""
TESTS = """
import pytest

@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_hog(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=size, block=32, args=(a, b)))
"""
PROJECT = {**FILES, "conftest.py": "", "hog.cu": HOG, "test_hog.py": TESTS, ".gitignore": ".gpuperf\n"}


@pytest.fixture
def project(suite: Suite, shared_folder: Path) -> Suite:
    """A repository whose first commit has its baselines."""
    with_baselines(suite, shared_folder / "diff", PROJECT, "--update-baselines", ARCHS, CUDA_VISIBLE_DEVICES="")
    commit(suite.path)
    return suite


def changed_lines(suite: Suite) -> int:
    """Lines of baselines taken away and lines added."""
    counts = git(suite.path, "diff", "--numstat", "--", "baselines/*.json*").split()
    return sum(int(count) for count in counts if count.isdigit())


def update(suite: Suite, edit: tuple[str, str, str]) -> None:
    suite.edit(*edit)
    assert suite.run("--update-baselines=all", ARCHS).ret == 0


def test_token_of_a_kernel_at_four_sizes_is_a_line_for_each_in_an_architecture(project: Suite) -> None:
    update(project, ("hog.cu", "s * 0.5f", "s / 0.3f"))
    assert 0 < changed_lines(project) <= 8 * RECORDS


def test_renamed_test_is_a_line_for_each_record_and_told_as_moved(project: Suite, command: Command) -> None:
    project.edit("test_hog.py", "def test_hog", "def test_many_values")
    assert command("baselines", "mv", "test_hog.py::test_hog", "test_hog.py::test_many_values")[0] == 0
    assert changed_lines(project) == 8 * RECORDS
    assert command("diff")[1].splitlines()[2:] == [
        "test_hog.py", "  hog", "    4 workloads of test_many_values[...]: moved from test_hog.py::test_hog", "",
        "4 workloads moved",
    ]  # fmt: skip
    assert project.run("--gpuperf", "--gpuperf-open=fail").ret == 0
