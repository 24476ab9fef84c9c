"""What becomes of the documents' claims travels from the tests to a file, and from the file to a page."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from record_samples import static_of, time_of

from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.model.time_record import Round

SUITE = Path(__file__).parents[3] / "example_suite"
RUN = {
    "gpu": "NVIDIA H200", "driver": "580.1", "toolchain": "nvrtc 13.0.88", "plugin": "0.1.0",
    "date": "2026-11-23", "peaks": {"copy_bandwidth": 4.2e12}, "source": "run",
}  # fmt: skip


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("claims_report")


def outcomes_of_all(report: ModuleType) -> list[dict[str, Any]]:
    """A made-up run: it took no counters; every other figure is in the middle of where it should be."""
    found: list[dict[str, Any]] = []
    for claim in report.load_claims().values():
        if claim.here is None:
            found.append({"id": claim.id, "verdict": claim.verdict(None).value, "measured": None})
            continue
        measured = None if claim.kind == "counter" else (claim.here.low + claim.here.high) / 2
        outcome = {"id": claim.id, "verdict": claim.verdict(measured).value, "measured": measured}
        if measured is None:
            outcome["missing"] = "a counter"
        if claim.because:
            outcome["because"] = [(one.here.low + one.here.high) / 2 for one in claim.because]
        found.append(outcome)
    return found


def workloads_of_all() -> list[dict[str, Any]]:
    """Of all that the headline tables show, each variant takes a microsecond longer than the one before."""
    headlines = importlib.import_module("headline_tables").HEADLINES
    return [
        {
            "module": f"example_suite/{each.module}", "test": each.test, "workload": workload,
            "time_ns": 1e6 + 1e3 * number, "bytes": 10**9, "registers": 16, "occupancy": 0.5,
        }
        for each in headlines
        for number, workload in enumerate(dict.fromkeys([each.reference, *each.documents]))
    ]  # fmt: skip


def text_of(claims: Iterable[dict[str, Any]], workloads: list[dict[str, Any]] | None = None) -> str:
    return json.dumps({"run": RUN, "claims": list(claims), "workloads": workloads or workloads_of_all()})


def test_committed_page_and_outcomes_are_as_they_would_be_written(report: ModuleType) -> None:
    outcomes = importlib.import_module("outcomes")
    page = SUITE.parent / "docs" / "results" / "claims.md"
    assert report.document(outcomes.read(outcomes.COMMITTED)) == page.read_text(encoding="utf-8")
    text = outcomes.COMMITTED.read_text(encoding="utf-8")
    assert outcomes.text_of(outcomes.read(outcomes.COMMITTED)) == text
    assert "GPU-" not in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as outcomes"),
        ('{"run": {"host": "a"}, "claims": [], "workloads": []}', "cannot be read as outcomes"),
        ('{"run": {}, "claims": [], "workloads": []}', "there is no outcome of HW-01"),
        ('{"run": {}, "claims": [{"id": "XX-01"}], "workloads": []}', "claim_data lacks: XX-01"),
        ({"measured": 3.8, "verdict": "contradicted"}, "TR-04: contradicted, by claim_data reproduced"),
        ({"measured": 2.0, "verdict": "direction holds, less"}, "TR-04: measured 2, `here` is"),
        ({"because": [1.0, 2.0, 3.0]}, "TR-04: figures of 3 reasons, not 0"),
        ("transpose_padded", "no time of transpose_padded in test_transpose32.py::test_transpose_of_a_batch"),
    ],
)
def test_partial_and_older_outcomes_make_no_page(
    report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, words: str
) -> None:
    if isinstance(content, dict):
        made = outcomes_of_all(report)
        content = text_of(line | content if line["id"] == "TR-04" else line for line in made)
    elif content == "transpose_padded":
        others = [each for each in workloads_of_all() if each["workload"] != content]
        content = text_of(outcomes_of_all(report), others)
    given, made = tmp_path / "outcomes.json", tmp_path / "claims.md"
    given.write_text(content, encoding="utf-8")
    assert report.main(["--from", str(given), "--output", str(made)]) == 1
    assert not made.exists()
    assert words in capsys.readouterr().err


def test_figures_of_a_workload_are_those_of_its_evidence(report: ModuleType) -> None:
    record = static_of(registers=24, occupancy=0.75)
    rounds = tuple(Round(session="s", midmean=midmean) for midmean in (4000.0, 9000.0))
    time = msgspec.structs.replace(time_of(bytes=10**6), rounds=rounds)
    counted = {"sm__cycles_elapsed.max": 9.0}
    facts = msgspec.structs.replace(nominal_facts("sm_90"), slug="nvidia-h200")

    def figures(**of_workload: Any) -> Any:
        work = {"key": {"module": "suite/test_copy.py", "test": "test_copy", "workload": "copy"}, **of_workload}
        head = {"module": "suite/test_copy.py", "test": "test_copy", "device": msgspec.to_builtins(facts)}
        return importlib.import_module("measured").figures_of(json.dumps({**head, "workloads": [work]}))

    static = {"sm_90": msgspec.to_builtins(record)}
    assert figures(static=static, time=msgspec.to_builtins(time), counters=counted) == [
        {
            "module": "suite/test_copy.py", "test": "test_copy", "gpu": "nvidia-h200", "workload": "copy",
            "time_ns": pytest.approx(6000), "bytes": 10**6, "registers": 24, "occupancy": 0.75, "counters": counted,
        }
    ]  # fmt: skip
    assert [each.keys() for each in figures()] == [{"module", "test", "gpu", "workload"}]
    assert figures(launched=False) == []


TESTS = """
    def test_stack(claim):
        claim("S4-01", 0, because=[16])

    def test_registers(claim):
        claim.not_comparable("CFD-01")
        claim("TR-09", 31)
        claim("S7-08", 0)
"""


def test_outcomes_of_all_tests_are_written_by_xdist_too(pytester: pytest.Pytester) -> None:
    names = ("conftest", "claims", "verdicts", "outcomes", "headline_tables", "counters", "hopper_metrics", "measured",
             "siblings", "pairs")  # fmt: skip
    for name in (*(f"{name}.py" for name in names), "pairs.json"):
        (pytester.path / name).write_text((SUITE / name).read_text(encoding="utf-8"), encoding="utf-8")
    shutil.copytree(SUITE / "claim_data", pytester.path / "claim_data")
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("--claims-to=found.json", "-n", "2").assert_outcomes(passed=1, failed=1)
    content = json.loads((pytester.path / "found.json").read_text(encoding="utf-8"))
    assert content["workloads"] == []
    assert content["claims"] == [
        {"id": "CFD-01", "verdict": "not comparable here", "measured": None},
        {"id": "S4-01", "verdict": "contradicted", "measured": 0.0, "because": [16.0]},
        {"id": "TR-09", "verdict": "contradicted", "measured": 31},
    ]
    result = pytester.runpytest_subprocess("--claims-to=nowhere/found.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--claims-to=nowhere/found.json: there is no folder *nowhere"])
