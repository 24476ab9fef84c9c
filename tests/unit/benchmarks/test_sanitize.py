"""``benchmarks/sanitize.py`` with a stand-in of compute-sanitizer that leaves a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_scripts import load_script

ROOT = Path(__file__).parents[3]
SCRIPT = load_script(ROOT / "benchmarks" / "sanitize.py")
STAND_IN = f"""#!{sys.executable}
import json, os, pathlib, sys
(log,) = (pathlib.Path(word.partition("=")[2]) for word in sys.argv if word.startswith("--log-file="))
log.with_suffix(".command").write_text("\\n".join(sys.argv))
said = {{"errors": int(log.stem.endswith("control")), "status": 0, "more": ""}}
said.update(json.loads(os.environ["STAND_IN"]).get(log.stem, {{}}))
if said["errors"] is not None:
    log.write_text(said["more"] + f"========= ERROR SUMMARY: {{said['errors']}} errors")
sys.exit(said["status"])
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs one tool; a process leaves what is given under its name."""
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(STAND_IN, encoding="utf-8")
    tool.chmod(0o755)

    def with_answers(only: str, answers: dict[str, Any]) -> int:
        monkeypatch.setenv("STAND_IN", json.dumps(answers))
        files = ("test_bank_conflicts.py", "test_matmul.py", "test_transpose32.py")
        status = SCRIPT.main([f"--to={tmp_path}", f"--sanitizer={tool}", "--only", only, "--files", *files])
        return int(status)

    return with_answers


def test_a_clean_suite_is_green(run: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("memcheck", {}) == run("racecheck", {}) == 0
    assert "| memcheck | 3 | 0 | 0 | 1 reported | " in capsys.readouterr().out
    memcheck, racecheck = ((tmp_path / f"{tool}-1.command").read_text() for tool in ("memcheck", "racecheck"))
    assert "\nexample_suite/test_bank_conflicts.py" in memcheck
    assert "\nexample_suite/test_transpose32.py::test_" in racecheck
    for file, _, test in (node.partition("::") for node in SCRIPT.BY_THE_CLOCK):
        assert f"def {test}(" in (ROOT / "example_suite" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("answers", "cell"),
    [
        ({"memcheck-1": {"errors": 3}, "memcheck-3": {"errors": 4}}, "| 7 | 0 | 1 reported"),
        ({"memcheck-2": {"errors": None}}, "not all ended well"),
        ({"memcheck-2": {"status": 1}}, "not all ended well"),
        ({"memcheck-control": {"errors": 0}}, "| 0 | 0 | 0 reported"),
        ({"memcheck-2": {"more": "Internal Sanitizer Error: no memory\n"}}, "| 0 | 1 | 1 reported"),
    ],
    ids=["errors", "no end", "failed test", "blind", "internal error"],
)
def test_other_outcomes_are_red(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], answers: dict[str, Any], cell: str
) -> None:
    assert run("memcheck", answers) == 1
    assert cell in capsys.readouterr().out
