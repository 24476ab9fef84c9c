"""The page about naive siblings: what is red, what should be, and what a run without a GPU can tell."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUITE = Path(__file__).parents[3] / "example_suite"
Judgements = list[dict[str, Any]]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("siblings_report")


def static(verdict: str, target: str = "sm_90") -> dict[str, Any]:
    return {"kind": "static", "target": target, "verdict": verdict}


def time(verdict: str, ratio: float | None = None) -> dict[str, Any]:
    figures = {} if ratio is None else {"time": {"ratio": ratio}}
    return {"kind": "time", "target": "nvidia-h200", "verdict": verdict, **figures}


SLOWER = [static("SAME"), time("SLOWER", 1.6912)]


def run_of(
    report: ModuleType, folder: Path, judgements: Callable[[Any], Judgements], **changes: Any
) -> tuple[int, str]:
    """Status and page of a made-up run."""
    given, made = folder / "turned.json", folder / "siblings.md"
    lines = [
        {"family": pair.family, "optimised": pair.optimised, "naive": pair.naive, "judgements": judgements(pair)}
        for pair in report.PAIRS
    ]
    given.write_text(json.dumps({"pairs": lines, **changes}), encoding="utf-8")
    status = report.main(["--from", str(given), "--output", str(made)])
    return status, made.read_text(encoding="utf-8") if made.exists() else ""


def row_of(page: str, optimised: str) -> str:
    (row,) = [line for line in page.splitlines() if line.split(" | ")[1:2] == [optimised]]
    return row


def test_red_and_missed_pairs_are_named(report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, page = run_of(report, tmp_path, lambda _: SLOWER)
    assert status == 0
    assert row_of(page, "transpose_padded").endswith("| bank conflicts | 1.69 | SAME | SLOWER x1.69 | red |")
    assert "gain at least 2 %, all are red." in page
    unseen: Mapping[str, Judgements] = {"transpose_padded": [static("SAME"), time("INCONCLUSIVE")]}
    status, page = run_of(report, tmp_path, lambda pair: unseen.get(pair.optimised, SLOWER))
    assert status == 1
    assert "and not: transpose_padded (transpose32)." in page
    assert row_of(page, "transpose_padded").endswith("| INCONCLUSIVE | green |")
    assert "not red: transpose_padded of transpose32" in capsys.readouterr().err


def test_green_pairs_that_may_be_and_a_run_without_a_gpu(report: ModuleType, tmp_path: Path) -> None:
    green = ("converged", "padded", "two kernels, 1 in 16")  # without a gain, on other data, callables
    unseen = {name: [static("UNCHANGED"), time("UNCHANGED", 1.0)] for name in green}
    status, page = run_of(report, tmp_path, lambda pair: unseen.get(pair.optimised, SLOWER))
    assert status == 0
    assert all(row_of(page, optimised).endswith("| green |") for optimised in green)
    worse = {"template": [static("WORSE"), static("SAME", "sm_120")]}
    status, page = run_of(report, tmp_path, lambda pair: worse.get(pair.optimised, [static("SAME")]))
    assert status == 0
    assert "1 are red by static evidence alone, without a GPU." in page
    assert "| WORSE (sm_90), SAME (sm_120) | not measured | red |" in row_of(page, "template")


@pytest.mark.parametrize(
    ("missing", "changes", "words"),
    [
        ("template", {}, "no judgement of sample7_template_branch: template"),
        ("", {"pairs": "none"}, "cannot be read as a run of --naive-siblings"),
    ],
)
def test_partial_runs_and_other_files_make_no_page(
    report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str, changes: dict[str, Any],
    words: str,
) -> None:  # fmt: skip
    found = run_of(report, tmp_path, lambda pair: [] if pair.optimised == missing else SLOWER, **changes)
    assert found == (1, "")
    assert words in capsys.readouterr().err
