"""What becomes of the documents' claims travels from the tests to a file, and from the file to a page."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUITE = Path(__file__).parents[2] / "example_suite"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("claims_report")


def outcomes_of_all(report: ModuleType) -> list[dict[str, Any]]:
    """A made-up run: counters are missing, everything else holds, save what the tests change."""
    outcomes: list[dict[str, Any]] = []
    for claim in report.load_claims().values():
        if claim.type == "b":
            outcomes.append({"id": claim.id, "verdict": "not measured", "measured": None, "reason": "a counter"})
        else:
            on = {"gpu": "nvidia-h200"} if claim.is_about_time else {}
            outcomes.append({"id": claim.id, "verdict": "holds", "measured": 2.81234, "expected": "at least 2.5", **on})
    return outcomes


def page_of(report: ModuleType, folder: Path, outcomes: Iterable[dict[str, Any]]) -> str:
    given, made = folder / "outcomes.json", folder / "claims.md"
    given.write_text(json.dumps({"claims": list(outcomes)}), encoding="utf-8")
    assert report.main(["--from", str(given), "--output", str(made)]) == 0
    return made.read_text(encoding="utf-8")


def row_of(page: str, claim_id: str) -> str:
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {claim_id} |")]
    return row


def test_a_claim_that_holds_shows_both_figures(report: ModuleType, tmp_path: Path) -> None:
    row = row_of(page_of(report, tmp_path, outcomes_of_all(report)), "S1-01")
    text = "Accumulating in a register instead of global memory: 5.08 to 1.81 ms, 2.81x."
    assert row == f"| S1-01 | {text} | RTX 6000 Ada | 2.81 (at least 2.5 expected) | holds |"


def test_a_refuted_claim_shows_its_reason(report: ModuleType, tmp_path: Path) -> None:
    outcomes = outcomes_of_all(report)
    refuted = {"id": "TR-01", "verdict": "refuted", "measured": 0.505, "reason": "Little's law", "gpu": "nvidia-h200"}
    page = page_of(report, tmp_path, [refuted if line["id"] == "TR-01" else line for line in outcomes])
    assert row_of(page, "TR-01").endswith("| Titan V | 0.505 | refuted: Little's law |")
    assert "refuted 1." in page


def test_counters_come_later_and_other_gaps_say_why(report: ModuleType, tmp_path: Path) -> None:
    outcomes = outcomes_of_all(report)
    gap = {"id": "MM-06", "verdict": "not measured", "measured": None, "reason": "needs tensor cores"}
    page = page_of(report, tmp_path, [gap if line["id"] == "MM-06" else line for line in outcomes])
    assert row_of(page, "TR-05").endswith("|  | counters come later |")
    assert row_of(page, "MM-06").endswith("|  | not measured: needs tensor cores |")


def test_every_claim_has_a_row_and_the_head_says_how_to_make_the_page(report: ModuleType, tmp_path: Path) -> None:
    page = page_of(report, tmp_path, outcomes_of_all(report))
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "claim"] == list(report.load_claims())
    assert "where the suite ran: nvidia-h200." in page
    assert "pytest --gpuperf example_suite --claims-to outcomes.json" in page
    assert "claims_report.py --from outcomes.json --output docs/claims.md" in page


def test_the_same_outcomes_in_another_order_make_the_same_page(report: ModuleType, tmp_path: Path) -> None:
    outcomes = outcomes_of_all(report)
    assert page_of(report, tmp_path, outcomes) == page_of(report, tmp_path, reversed(outcomes))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as outcomes"),
        ("[]", "cannot be read as outcomes"),
        ('{"claims": []}', "has no outcome of HW-01, HW-02"),
        ('{"claims": [{"id": "XX-01"}]}', "claims.json lacks: XX-01"),
    ],
)
def test_a_part_of_a_run_makes_no_page(
    report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    given, made = tmp_path / "outcomes.json", tmp_path / "claims.md"
    given.write_text(content, encoding="utf-8")
    assert report.main(["--from", str(given), "--output", str(made)]) == 1
    assert words in capsys.readouterr().err
    assert not made.exists()


TESTS = """
    def test_stack(claim):
        claim("S4-01", 0, equals=0)

    def test_registers(claim):
        claim.skipped("S1-02", "a counter")
        claim("S7-01", 3, at_least=4)
        claim("S7-08", 0, equals=0)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one_process", "xdist"])
def test_outcomes_of_all_tests_are_written_whoever_ran_them(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    for name in ("conftest.py", "claims.py", "claims.json", "siblings.py", "pairs.py"):
        (pytester.path / name).write_text((SUITE / name).read_text(encoding="utf-8"), encoding="utf-8")
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("--claims-to=found.json", *workers).assert_outcomes(passed=1, failed=1)
    assert json.loads((pytester.path / "found.json").read_text(encoding="utf-8")) == {
        "claims": [
            {"id": "S1-02", "verdict": "not measured", "measured": None, "reason": "a counter"},
            {"id": "S4-01", "verdict": "holds", "measured": 0, "expected": "exactly 0"},
            {"id": "S7-01", "verdict": "fails", "measured": 3, "expected": "at least 4"},
        ]
    }


def test_a_file_in_no_folder_is_a_usage_error(pytester: pytest.Pytester) -> None:
    for name in ("conftest.py", "claims.py", "claims.json", "siblings.py", "pairs.py"):
        (pytester.path / name).write_text((SUITE / name).read_text(encoding="utf-8"), encoding="utf-8")
    result = pytester.runpytest_subprocess("--claims-to=nowhere/found.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--claims-to=nowhere/found.json: there is no folder *nowhere"])
