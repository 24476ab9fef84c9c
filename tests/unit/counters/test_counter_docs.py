"""The documentation of counters names what the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.counters.catalogue import METRICS, NAMES, SETS, STALLS

DOCS = Path(__file__).parents[3] / "docs"
TEXT = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("how-to/counters.md", "reference/metrics.md"))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_in_the_manual(name):
    for reason in STALLS:
        if f"_{reason}_per" in name or name.endswith(f"_{reason}"):
            assert f"`{reason}`" in TEXT
            name = name.replace(reason, "REASON")
    assert f"`{name}`" in TEXT


def test_bands_in_the_manual_are_those_of_the_catalogue():
    for metric in METRICS.values():
        row = next((line for line in TEXT.splitlines() if line.startswith(f"| `{metric.name}` ")), None)
        if row is not None:
            assert f"| {metric.klass}" in row
            assert ("shown only" in row) == (metric.klass != "informational" and metric.better == "neutral")
            assert (f"{(metric.tolerance or 0) * 100:g} %" in row) == bool(metric.tolerance)


@pytest.mark.parametrize("word", [*SETS, *NAMES])
def test_every_set_and_chip_is_in_the_manual(word):
    assert word in TEXT
