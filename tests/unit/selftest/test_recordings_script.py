"""``benchmarks/recording_rules.py``: its processes on a simulated GPU, and a table that goes red."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("recording_rules")


@pytest.mark.parametrize(
    ("command", "wanted", "beside"), [("idle", 14, {""}), ("busy", 3, {"copy", "compute", "short"})]
)
def test_fresh_processes_record_every_kernel(
    script: ModuleType, simulated_children: str, tmp_path: Path, command: str, wanted: int, beside: set[str]
) -> None:
    file = tmp_path / f"{command}.json"
    arguments = [command, f"--output={file}", f"--device={simulated_children}", f"--recordings={wanted}"]
    assert script.main([*arguments, "--seconds=600"]) == 0
    documents = json.loads(file.read_text())
    assert {one["neighbour"] for one in documents} == beside
    for document in documents:
        assert {one["kernel"] for one in document["recordings"]} == {one.name for one in script.WANTED}
    takes = documents[0]["recordings"][0]["takes"]
    assert [len(samples) for samples in takes[0]["samples"]] == [30, 30]
    assert takes[0]["rounds"][0]["midmean"] == pytest.approx(sum(takes[0]["samples"][0]) / 30, rel=0.01)
    assert len(takes[0]["timeline"]) == 2
    assert takes[0]["disturbed"] == []


STATE = {"sm_clock_mhz": 1980}


def take(*, noisy: bool, said: bool = False, pauses_ns: tuple[float, ...] = ()) -> dict[str, Any]:
    """Of one round of thirty samples, ``noisy`` where a sixth of them are far outliers."""
    samples = [100_000.0 + index % 7 for index in range(25)] + [(200_000.0 if noisy else 100_003.0)] * 5
    timeline = [{"gap_third_us": 20.0, "pauses_ns": pauses_ns}]
    return {"samples": [samples], "timeline": timeline, "before": STATE, "after": STATE,
            "disturbed": ["noise"] if said else []}  # fmt: skip


def document(neighbour: str, *recordings: list[dict[str, Any]]) -> dict[str, Any]:
    some = [{"kernel": "loop 2 us", "takes": takes} for takes in recordings]
    return {"neighbour": neighbour, "tick_ns": 1.0, "timer": "cupti", "recordings": some}


@pytest.mark.parametrize(
    ("neighbour", "refused", "broken"),
    [
        ("", 0, []),
        ("", 1, ["BROKEN: 1 of 20 recordings on an idle GPU are refused"]),
        ("copy", 19, []),
        ("copy", 18, ["BROKEN: 18 of 20 recordings on a busy GPU are refused"]),
    ],
)
def test_a_table_counts_what_today_s_rules_refuse_in_the_end(
    script: ModuleType, neighbour: str, refused: int, broken: list[str]
) -> None:
    some = [[take(noisy=True, said=True), take(noisy=index < refused)] for index in range(20)]
    lines, found = script.counted([document(neighbour, *some)])
    assert lines[2:] == [f"| {neighbour or 'nothing'} | loop 2 us | 20 | 20 | 20 | {refused} | 20 to 20 |"]
    assert found == broken


def test_what_was_refused_and_is_fit_by_today_s_rules_counts_as_taken(script: ModuleType) -> None:
    lines, found = script.counted([document("", [take(noisy=False, said=True)])])
    assert lines[2].endswith("| 1 | 1 | 0 | 0 | 20 to 20 |")
    assert found == []


def test_a_pause_refuses(script: ModuleType) -> None:
    lines, _ = script.counted([document("copy", [take(noisy=False, pauses_ns=(8e5,))])])
    assert "| 1 | 0 | 1 | 1 |" in lines[2]
