"""The campaign on pairs of processes: its suite can be collected, and its table counts what verdicts say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from loaded_scripts import load_script

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield load_script(ROOT / "benchmarks" / "paired_processes.py")


def test_its_suite_is_one_that_pytest_collects(script: ModuleType, tmp_path: Path) -> None:
    script.repository(tmp_path / "project")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=tmp_path / "project", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("::test_") >= 10


def judged(verdict: str, ratio: float | None) -> dict[str, object]:
    figures = {"ratio": ratio, "after_ns": 20_000.0}
    times = [
        {"kind": "static", "verdict": "UNCHANGED", "reason": ""},
        {"kind": "time", "verdict": verdict, "reason": "", "time": figures},
    ]
    return {"test": "test_softmax[a]", "workloads": [{"key": {"workload": "w"}, "seconds": 1.5, "judgements": times}]}


@pytest.mark.parametrize(("null", "status"), [("SAME", 0), ("SLOWER", 1), ("SUSPECT", 1)])
def test_false_verdicts_are_counted_and_fail(script: ModuleType, tmp_path: Path, null: str, status: int) -> None:
    for percent, verdict in ((0, null), (1, "SLOWER")):
        seen = list(script.verdicts({"tests": [judged(verdict, 1 + percent / 100)]}, percent))
        (tmp_path / f"{percent}.json").write_text(json.dumps([one._asdict() for one in seen]))
    page = tmp_path / "page.md"
    assert script.main(["merge", str(tmp_path), "--output", str(page)]) == status
    assert "| softmax: w | 20 | +1 % | 1 | 1 | 0 | 0 | 0 | 1.0100, 0.00 % | 1.50, 1.50 |" in page.read_text()


def test_losses_alone_make_a_table_too(script: ModuleType, tmp_path: Path) -> None:
    seen = list(script.verdicts({"tests": [judged("SLOWER", 1.01)]}, 1))
    (tmp_path / "1.json").write_text(json.dumps([one._asdict() for one in seen]))
    page = tmp_path / "page.md"
    assert script.main(["merge", str(tmp_path), "--output", str(page)]) == 0
    assert "| softmax: w | 20 | +1 % |" in page.read_text()
