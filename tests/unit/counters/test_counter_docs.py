"""The documentation of counters names what the code has; the reference page is made from it."""

from __future__ import annotations

from pathlib import Path

from pytest_gpuperf.counters.catalogue import NAMES, SETS

DOCS = Path(__file__).parents[3] / "docs"


def test_every_set_and_chip_is_in_the_manual():
    pages = ("how-to/counters.md", "reference/metrics.md")
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    assert [word for word in (*SETS, *NAMES) if word not in text] == []
