"""The messages in the README and in the manual are what the command prints, of kernels compiled here and now."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_gpuperf.compile.nvcc import toolchain

ROOT = Path(__file__).parents[2]
ARCH = "sm_90"
MANUAL = "docs/explanation/why-slower.md"
ACCEPT = "If this change is intended"
EXAMPLES = {
    "at most 128 registers": "occupancy_registers", "template": "sample7_template_branch",
    "FloatLiteral": "math_cost_ladder",
}  # fmt: skip
"""Family of the workload that a message is about."""


def messages(page: str) -> dict[str, str]:
    """Messages of a page by workload, from the verdict to the words on how to accept the change."""
    text = (ROOT / page).read_text(encoding="utf-8")
    said = re.findall(rf"^(\S[^\n]*)  WORSE  on {ARCH} \(static\)\n(.*?)^{ACCEPT}", text, re.DOTALL | re.MULTILINE)
    return {name: f"{name}  WORSE  on {ARCH} (static)\n{body}{ACCEPT}" for name, body in said}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the gate says, without a GPU, of the naive siblings of all of these workloads."""
    if toolchain() not in _recorded():
        pytest.skip(f"the committed baselines are not of {toolchain()}")
    root = tmp_path_factory.mktemp("suite")
    for name in ("example_suite", f"baselines/{ARCH}"):
        shutil.copytree(ROOT / name, root / name)
    (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    files = [f"example_suite/test_{family}.py" for family in EXAMPLES.values()]
    chosen = [f"--naive-siblings={family}:{name}" for name, family in EXAMPLES.items()]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--gpuperf", f"--gpuperf-arch={ARCH}", *files, *chosen],
        cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


def _recorded() -> set[str]:
    text = (ROOT / "baselines" / ARCH / "example_suite" / "test_math_cost_ladder.jsonl").read_text(encoding="utf-8")
    return set(re.findall(r'"(nvrtc [0-9.]+)"', text))


@pytest.mark.parametrize("page", ["README.md", MANUAL])
def test_every_message_is_printed_as_it_stands(page: str, printed: str) -> None:
    said = messages(page)
    assert said
    for message in said.values():
        assert message in printed


def test_the_pages_have_a_message_of_every_workload_that_is_run_for_them() -> None:
    assert {*messages(MANUAL), *messages("README.md")} == set(EXAMPLES)
