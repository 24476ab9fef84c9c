"""``benchmarks/sanitize.py`` with a stand-in of compute-sanitizer that leaves a log."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sanitize

ROOT = Path(__file__).parents[3]
STAND_IN = f"""#!{sys.executable}
import pathlib, sys
(log,) = (pathlib.Path(word.partition("=")[2]) for word in sys.argv if word.startswith("--log-file="))
log.with_suffix(".command").write_text("\\n".join(sys.argv))
answers = {{"control": "ERROR SUMMARY: 1 error", "1": "ERROR SUMMARY: 0 errors", "2": "ERROR SUMMARY: 0 errors"}}
answers |= dict(ANSWERS)
answer = answers[log.stem.partition("-")[2]]
log.write_text("========= " + answer)
sys.exit(answer == "ERROR SUMMARY: 0 errors, and a failed test")
"""


def run(folder: Path, tool: str, **answers: str) -> int:
    stand_in = folder / "compute-sanitizer"
    stand_in.write_text(STAND_IN.replace("ANSWERS", repr({name.strip("_"): one for name, one in answers.items()})))
    stand_in.chmod(0o755)
    files = ("test_bank_conflicts.py", "test_transpose32.py")
    arguments = [f"--to={folder}", f"--sanitizer={stand_in}", "--only", tool, "--files", *files]
    return int(sanitize.main(arguments))


def test_a_clean_suite_is_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "memcheck") == run(tmp_path, "racecheck") == 0
    assert "| memcheck | 2 | 0 | 0 | 1 reported | " in capsys.readouterr().out
    memcheck, racecheck = ((tmp_path / f"{tool}-1.command").read_text() for tool in ("memcheck", "racecheck"))
    assert "\nexample_suite/test_bank_conflicts.py" in memcheck
    assert "\nexample_suite/test_transpose32.py::test_" in racecheck
    for file, _, test in (node.partition("::") for node in sanitize.BY_THE_CLOCK):
        assert f"def {test}(" in (ROOT / "example_suite" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("answers", "cell"), [
    ({"_1": "ERROR SUMMARY: 3 errors", "_2": "ERROR SUMMARY: 4 errors"}, "| 7 | 0 | 1 reported"),
    ({"_2": "nothing"}, "not all ended well"),
    ({"_2": "ERROR SUMMARY: 0 errors, and a failed test"}, "not all ended well"),
    ({"control": "ERROR SUMMARY: 0 errors"}, "| 0 | 0 | 0 reported"),
    ({"_2": "Internal Sanitizer Error: no memory\n= ERROR SUMMARY: 0 errors"}, "| 0 | 1 | 1 reported"),
], ids=["errors", "no end", "failed test", "blind", "internal error"])  # fmt: skip
def test_red_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: dict[str, str], cell: str) -> None:
    assert run(tmp_path, "memcheck", **answers) == 1
    assert cell in capsys.readouterr().out
