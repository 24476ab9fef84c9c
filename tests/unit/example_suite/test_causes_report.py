"""The page about causes: it is what the command writes, and keeps what the project promises; and noise has no cause."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import causes as report
import msgspec
import pytest

from pytest_gpuperf.advise import usage_from_counters
from pytest_gpuperf.advise.advisor import advise, case_of
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.counters.catalogue import SETS

ROOT = Path(__file__).parents[3]
COMPARISONS = 200


@pytest.fixture(scope="module")
def suite() -> Any:
    """One for all tests: its estimates take seconds."""
    return report.Suite()


@pytest.fixture
def command(suite: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``causes`` with that suite."""
    monkeypatch.setattr(report, "Suite", lambda: suite)
    return report


def test_committed_page_is_what_the_command_writes(command: Any, tmp_path: Path) -> None:
    made = tmp_path / "causes.md"
    assert command.main(["--output", str(made)]) == 0
    page = made.read_text(encoding="utf-8")
    assert page == (ROOT / "docs/results/causes.md").read_text(encoding="utf-8")
    manual = " ".join((ROOT / "docs/explanation/why-slower.md").read_text(encoding="utf-8").split())
    right = r"true cause in (\d+ of \d+) .* pairs by the machine code .* and in (\d+ of \d+) .* by counters"
    found = re.search(right, " ".join(page.split()))
    assert found is not None
    assert f"first in {found[1]} pairs of the example suite by the machine code alone, and in {found[2]} by" in manual
    assert len(re.findall(r"(?m)^\| .* \| .* \| (?!- \|$).* \|$", page)) >= 93


def test_fewer_right_causes_than_promised_are_an_error(
    command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(command.PROMISED, "static", 0.99)
    made = tmp_path / "causes.md"
    assert command.main(["--output", str(made)]) == 1
    assert "fewer causes are right than 99%" in capsys.readouterr().err
    assert "| transpose32 |" in made.read_text(encoding="utf-8")


def workloads(suite: Any) -> dict[tuple[str, str], Side]:
    """Every workload of a pair that was counted, by test and name."""
    sides = {
        (pair.key("").node_id, name): side
        for pair in report.PAIRS
        for name, side in zip((pair.optimised, pair.naive), suite.sides(pair), strict=True)
    }
    return {place: side for place, side in sides.items() if side.counters}


def again(side: Side, chance: random.Random) -> Side:
    """The same counted once more: what is exact stays, all else is off by some percent."""
    return msgspec.structs.replace(
        side,
        counters={
            name: value if name in usage_from_counters.EXACT else value * chance.uniform(0.95, 1.05)
            for name, value in side.counters.items()
        },
    )


def test_a_version_compared_with_itself_has_no_cause(suite: Any) -> None:
    chance = random.Random(7)
    sides = list(workloads(suite).values())
    compared = [(side, again(side, chance)) for side in sides * 2][:COMPARISONS]
    assert len(compared) == COMPARISONS
    assert [case.counted for before, after in compared if (case := case_of(before, after))] == [True] * COMPARISONS
    assert [named for before, after in compared for named in advise(before, after)] == []
    bare = [Side(arch="sm_90", static=side.static) for side in sides if side.static]
    assert [named for side in bare for named in advise(side, side)] == []


def test_what_other_gpus_counted_of_the_same_code_has_no_cause(suite: Any) -> None:
    """The baselines' counters beside those of the claims, which were taken on other H200s and of another set."""
    pairs, recorded = {pair.key("").node_id: pair for pair in report.PAIRS}, report.Recorded()
    compared = [
        (side, msgspec.structs.replace(side, counters=taken))
        for (test, name), side in workloads(suite).items()
        if (taken := recorded.counted(pairs[test], name).counters) != side.counters  # others were counted once
    ]
    assert len(compared) >= 170
    assert [named for before, after in compared for named in advise(before, after)] == []


def test_fewer_counters_than_needed_leave_the_machine_code_to_speak(suite: Any) -> None:
    """The default set counts too little to name causes by."""
    (pair,) = [p for p in report.PAIRS if p.optimised == "transpose_coalesced" and p.naive == "transpose_naive"]
    full, default = ({metric.name for metric in SETS[name]} for name in ("full", "default"))
    assert full >= {*usage_from_counters.NEEDED, *usage_from_counters.EXACT}
    sides = suite.sides(pair)
    few = [
        msgspec.structs.replace(side, counters={name: v for name, v in side.counters.items() if name in default})
        for side in sides
    ]
    assert all(side.counters for side in few)
    case = case_of(*few)
    assert case is not None
    assert not case.counted
    assert advise(*few)[0].cause == "uncoalesced access"
