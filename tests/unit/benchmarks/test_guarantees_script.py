"""The simulations of the guarantees, in small: they hold, and the adversary that they were made for is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from loaded_scripts import load_script

ROOT = Path(__file__).parents[3]
guarantees: Any = load_script(ROOT / "benchmarks" / "guarantees.py")
SEED = 11


def rate(kind: str, name: str, alpha: float) -> float:
    """Of false SLOWER at the tolerance itself."""
    policy = guarantees.dataclasses.replace(guarantees.policy_at(1), alpha=alpha)
    judge, noises = {
        "slots": (guarantees.judged, guarantees.NOISES),
        "long launches": (guarantees.judged_long, guarantees.LONG_NOISES),
    }[kind]
    codes, _ = judge(noises[name], policy.delta, policy, 3000, SEED)
    return float((codes == 0).mean())


@pytest.mark.parametrize("name", guarantees.NOISES)
def test_slots_keep_alpha_at_the_tolerance(name: str) -> None:
    assert rate("slots", name, 0.05) <= 0.05


@pytest.mark.parametrize("name", guarantees.LONG_NOISES)
def test_long_launches_keep_alpha_at_the_tolerance(name: str) -> None:
    assert rate("long launches", name, 0.05) <= 0.05


def test_discarding_by_the_clock_breaks_alpha_and_remarking_on_it_does_not() -> None:
    before, now = guarantees.adversary(2000)[-2:]
    assert float(before.split("|")[3]) > 5
    assert float(now.split("|")[3]) <= 1


def test_the_tail_costs_no_power() -> None:
    for line in guarantees.power(1000)[5:]:
        *_, early, early_after, late, late_after, _ = line.split("|")
        assert float(early_after) >= float(early) - 0.02
        assert float(late_after) >= float(late) - 0.01


def test_recorded_launches_are_replayed(tmp_path: Path) -> None:
    recorded = tmp_path / "launches.json"
    recorded.write_text(json.dumps({"loop 25 ms": [25e6, 25.01e6, 24.99e6, 25.02e6] * 50}))
    page = tmp_path / "page.md"
    assert guarantees.main(["long", "--runs", "50", "--launches", str(recorded), "--output", str(page)]) == 0
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| loop")]
    assert len(rows) == 18
    slower = {(row[2].strip(), row[3].strip()): float(row[4]) for row in rows}
    assert all(found == (0.0 if effect == "A/A" else 1.0) for (effect, _), found in slower.items())
