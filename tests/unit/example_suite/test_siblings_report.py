"""The page about naive siblings: what is red, and which pairs should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import siblings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "results" / "siblings.md").read_text(encoding="utf-8")
PADDED = "| transpose32 | transpose_padded | transpose_coalesced | bank conflicts | "


def judged(kind: str, verdict: str, target: str = "sm_90", ratio: float | None = None) -> dict[str, Any]:
    return {"kind": kind, "target": target, "verdict": verdict, "time": {"ratio": ratio}}


@pytest.mark.parametrize(("judgements", "said"), [
    ([judged("static", "SAME"), judged("time", "SLOWER", ratio=1.6912)], "SAME | SLOWER x1.69 | red |"),
    ([judged("static", "WORSE"), judged("static", "SAME", "sm_120")],
     "WORSE (sm_90), SAME (sm_120) | not measured | red |"),
    ([judged("time", "NOT-SLOWER")], "none | NOT-SLOWER | green |"),
])  # fmt: skip
def test_rows_show_verdicts(judgements: list[dict[str, Any]], said: str) -> None:
    (pair,) = [pair for pair in siblings.PAIRS if pair.optimised == "transpose_padded"]
    row = siblings.row(pair, judgements, siblings.Recorded())
    assert row.startswith(PADDED)
    assert row.endswith(said)


def test_the_page_has_every_pair_and_its_summary() -> None:
    assert {(pair.family, pair.optimised, pair.naive) for pair in siblings.PAIRS} == set(siblings._PAIR.findall(PAGE))
    assert siblings.with_rows(PAGE, []) == PAGE


def test_new_rows_replace_old_ones_and_missed_pairs_are_named() -> None:
    added = "| a | fast | slow | divergence | 1.01 | SAME | SAME | green |"
    page = siblings.with_rows(PAGE, [f"{PADDED}1.69 | SAME | INCONCLUSIVE | green |", added])
    assert page.count(PADDED) == 1
    assert "Of 103 pairs that differ in code or launch and gain at least 2 %, 100 are red, and not: " in page
    assert "transpose_padded (transpose32)" in page.partition("\n\n| family")[0]
    assert f"\n{added}\n\n## The same machine code" in page


def test_unknown_families_end_the_run() -> None:
    assert {pair.optimised for pair in siblings.chosen(["dpx", "transpose32:transpose_padded"])} > {"transpose_padded"}
    with pytest.raises(SystemExit, match="transpose23"):
        siblings.chosen(["transpose23"])
