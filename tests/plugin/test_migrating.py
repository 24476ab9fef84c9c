"""Every block of docs/how-to/migrating.md is a test file that runs: without a GPU as far as that goes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrating.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_there_is_a_block_of_each_python_tool():
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("block", BLOCKS, ids=["pytest-benchmark", "cupyx", "triton", "nvbench"])
def test_a_block_is_recorded_and_gated(pytester, block):
    pytester.path.joinpath("test_block.py").write_text(block)
    flags = ("--gpuperf-arch=sm_90", "-p", "no:cacheprovider")
    recorded = pytester.runpytest_subprocess("--update-baselines", *flags)
    gated = pytester.runpytest_subprocess("--gpuperf", *flags)
    for result in (recorded, gated):
        assert result.ret in (0, 10), str(result.stdout)  # 10: nothing could be measured, of a callable without a GPU
        assert " failed" not in str(result.stdout)
    if "cuda_kernel" in block:
        gated.stdout.fnmatch_lines(["6 workloads: 6 UNCHANGED"])
