"""What a reviewer reads of an edit: how many lines of baselines change with it, for three architectures."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from pytest_gpuperf.cli.command_line import main

ARCHS = "--gpuperf-arch=sm_80,sm_90,sm_120"
FILES = 3
KERNELS = """
extern "C" __global__ void scale(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2.0f;
}
extern "C" __global__ void shift(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] + 2.0f;
}
"""
TEST = """
import pytest

SIZES = [256 << k for k in range(3)]

@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["scale"])
def test_at_sizes(cuda_kernel, gpu, gpuperf, name, n):
    kernel = cuda_kernel("kernels.cu", name)
    a, b = gpu.random(n, seed=1), gpu.empty(n)
    gpuperf(kernel.launch(grid=n // 128, block=128, args=(a, b, n)))
"""


@pytest.fixture
def sizes(suite):
    suite.write("kernels.cu", KERNELS)
    suite.write("test_suite.py", TEST)
    return suite


def texts(suite) -> dict[str, list[str]]:
    root = Path(suite.path, "baselines")
    return {str(path.relative_to(root)): path.read_text().splitlines() for path in sorted(root.rglob("*.json*"))}


def changed_lines(before: dict[str, list[str]], after: dict[str, list[str]]) -> int:
    """Lines taken away and lines added, as git counts them."""
    return sum(
        line[0] in "+-" and not line.startswith(("+++", "---"))
        for name in before.keys() | after.keys()
        for line in difflib.unified_diff(before.get(name, []), after.get(name, []), lineterm="")
    )


def updated(suite, edit) -> int:
    suite.run("--update-baselines", ARCHS)
    before = texts(suite)
    edit()
    assert suite.run("--update-baselines=all", ARCHS).ret == 0
    after = texts(suite)
    assert after or not before
    return changed_lines(before, after)


def test_a_token_of_a_kernel_at_three_sizes_is_a_line_for_each_in_an_architecture(sizes):
    found = updated(sizes, lambda: sizes.edit("kernels.cu", "a[i] * 2.0f", "a[i] / 3.0f"))
    assert 0 < found <= 6 * FILES


def test_a_comment_changes_nothing(sizes):
    assert updated(sizes, lambda: sizes.edit("kernels.cu", "    if (i < n) b[i] = a[i] *", "    // each its own\n    if (i < n) b[i] = a[i] *")) == 0  # fmt: skip # noqa: E501


def test_a_renamed_test_is_a_line_for_each_record(sizes, capsys):
    sizes.run("--update-baselines", ARCHS)
    before = texts(sizes)
    names = ("test_suite.py::test_at_sizes", "test_suite.py::test_at_all_sizes")
    assert main(["baselines", "mv", *names, "--baselines", str(sizes.path / "baselines")]) == 0
    capsys.readouterr()
    sizes.edit("test_suite.py", "test_at_sizes", "test_at_all_sizes")
    assert changed_lines(before, texts(sizes)) == 6 * FILES
    assert sizes.run("--gpuperf", "--gpuperf-open=fail").ret == 0
