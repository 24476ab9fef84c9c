"""What becomes of the documents' claims travels from the tests to a file, and from the file to a page."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.model.evidence import Identity, Occupancy, Round, StaticProfile, StaticRecord, TimeRecord

SUITE = Path(__file__).parents[3] / "example_suite"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("claims_report")


@pytest.fixture
def headlines(report: ModuleType) -> ModuleType:
    return importlib.import_module("headline_tables")


def outcomes_of_all(report: ModuleType) -> list[dict[str, Any]]:
    """A made-up run: it took no counters, everything else holds, save what the tests change."""
    outcomes: list[dict[str, Any]] = []
    for claim in report.load_claims().values():
        if claim.see:
            outcomes.append({"id": claim.id, "verdict": "measured elsewhere", "measured": None})
        elif claim.type == "b":
            outcomes.append({"id": claim.id, "verdict": "not measured", "measured": None, "reason": "a counter"})
        else:
            on = {"gpu": "nvidia-h200"} if claim.is_about_time else {}
            outcomes.append({"id": claim.id, "verdict": "holds", "measured": 2.81234, "expected": "at least 2.5", **on})
    return outcomes


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


def page_of(report: ModuleType, folder: Path, outcomes: Iterable[dict[str, Any]]) -> str:
    given, made = folder / "outcomes.json", folder / "claims.md"
    content = {"claims": list(outcomes), "workloads": workloads_of_all()}
    given.write_text(json.dumps(content), encoding="utf-8")
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


def test_counts_are_shown_in_full(report: ModuleType, tmp_path: Path) -> None:
    counted = {"id": "HW-03", "verdict": "holds", "measured": 65536.0, "expected": "exactly 65536"}
    outcomes = [counted if line["id"] == "HW-03" else line for line in outcomes_of_all(report)]
    assert "| Hopper | 65536 (exactly 65536 expected) | holds |" in row_of(page_of(report, tmp_path, outcomes), "HW-03")


def test_gaps_say_why(report: ModuleType, tmp_path: Path) -> None:
    page = page_of(report, tmp_path, outcomes_of_all(report))
    assert row_of(page, "TR-05").endswith("|  | not measured: a counter |")


def test_a_promise_shows_the_figures_of_the_claims_that_measure_it(report: ModuleType, tmp_path: Path) -> None:
    outcomes = outcomes_of_all(report)
    page = page_of(report, tmp_path, outcomes)
    assert row_of(page, "CHK-03").endswith("|  | measured elsewhere: DB-02 (2.81), S8-01 (2.81) |")
    assert row_of(page, "CHK-04").endswith("|  | measured elsewhere: TR-12 (not measured), BNK-05 (2.81) |")


def test_every_claim_has_a_row_and_the_head_says_how_to_make_the_page(report: ModuleType, tmp_path: Path) -> None:
    page = page_of(report, tmp_path, outcomes_of_all(report))
    by_claim = page.partition("## Claim by claim")[2]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in by_claim.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "claim"] == list(report.load_claims())
    assert "where the suite ran: nvidia-h200." in page
    assert "pytest --gpuperf --gpuperf-ncu=$(python example_suite/hopper_metrics.py) \\\n" in page
    assert "claims_report.py --from outcomes.json --output docs/results/claims.md" in page


def test_the_same_outcomes_in_another_order_make_the_same_page(report: ModuleType, tmp_path: Path) -> None:
    outcomes = outcomes_of_all(report)
    assert page_of(report, tmp_path, outcomes) == page_of(report, tmp_path, reversed(outcomes))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as outcomes"),
        ("[]", "cannot be read as outcomes"),
        ('{"claims": []}', "cannot be read as outcomes"),
        ('{"claims": [], "workloads": []}', "has no outcome of HW-01, HW-02"),
        ('{"claims": [{"id": "XX-01"}], "workloads": []}', "claims.json lacks: XX-01"),
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


# --- headline tables -----------------------------------------------------------------------------


def table_of(page: str, title: str) -> list[str]:
    return page.partition(f"### {title}\n\n")[2].partition("\n\n")[0].splitlines()


def test_a_headline_table_has_all_variants_with_the_documents_gains(report: ModuleType, tmp_path: Path) -> None:
    page = page_of(report, tmp_path, outcomes_of_all(report))
    assert table_of(page, "Sample 1: redundant accesses") == [
        "| variant | time | gain | the document's | GB/s | registers | occupancy |",
        "|---|---|---|---|---|---|---|",
        "| accumulate_naive | 1.000 ms | 1.00 | 1.00 | 1000 | 16 | 50% |",
        "| accumulate_register | 1.001 ms | 1.00 | 2.81 | 999 | 16 | 50% |",
    ]
    assert len(table_of(page, "Intersections of segments")) == 2 + 18


def test_counters_add_their_columns(headlines: ModuleType) -> None:
    counters = {
        "smsp__sass_data_bytes_mem_global_op_ld.sum": 2e8,
        "dram__bytes_read.sum": 9e8,
        "dram__bytes_write.sum": 1e8,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 91.4,
    }
    workloads = [each | {"flops": 2 * 10**10, "counters": counters} for each in workloads_of_all()]
    title, *_, row = table_of(headlines.tables(workloads) + "\n", "Multiplying matrices")
    assert title == (
        "| variant | time | gain | GB/s | GFLOP/s | registers | occupancy | achieved | "
        "FLOP per byte loaded | FLOP per byte of DRAM |"
    )
    assert row == "| matmul_naive | 1.000 ms | 1.00 | 1000 | 20000 | 16 | 50% | 91% | 100 | 20 |"


@pytest.mark.parametrize("moved", [{"dram__bytes_read.sum": 4e8, "dram__bytes_write.sum": 0.0}, {}])
def test_what_stays_in_the_caches_has_no_intensity_on_dram(headlines: ModuleType, moved: dict[str, float]) -> None:
    workloads = [each | {"flops": 10**9, "counters": moved} for each in workloads_of_all()]
    assert "DRAM" not in headlines.tables(workloads)


def test_a_table_without_all_its_variants_makes_no_page(
    report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, made = tmp_path / "outcomes.json", tmp_path / "claims.md"
    workloads = [each for each in workloads_of_all() if each["workload"] != "transpose_padded"]
    given.write_text(json.dumps({"claims": outcomes_of_all(report), "workloads": workloads}), encoding="utf-8")
    assert report.main(["--from", str(given), "--output", str(made)]) == 1
    words = "no time of transpose_padded in test_transpose32.py::test_transpose_of_a_batch"
    assert words in capsys.readouterr().err
    assert not made.exists()


def test_headline_tables_are_of_workloads_that_are_there(headlines: ModuleType) -> None:
    baselines = SUITE.parent / "baselines" / "sm_90" / SUITE.name
    for each in headlines.HEADLINES:
        file = baselines / Path(each.module).with_suffix(".json")
        recorded = json.loads(file.read_text(encoding="utf-8"))["toolchains"]
        (by_test,) = recorded.values()
        assert {each.reference, *each.documents} <= by_test[each.test].keys(), each.title


# --- from the tests to the file ------------------------------------------------------------------


def evidence(**of_workload: Any) -> str:
    work = {"key": {"module": "suite/test_copy.py", "test": "test_copy", "workload": "copy"}, **of_workload}
    facts = msgspec.structs.replace(nominal_facts("sm_90"), slug="nvidia-h200")
    head = {"module": "suite/test_copy.py", "test": "test_copy", "device": msgspec.to_builtins(facts)}
    return json.dumps({**head, "workloads": [work]})


def test_figures_of_a_workload_are_those_of_its_evidence(report: ModuleType) -> None:
    figures_of = importlib.import_module("measured").figures_of
    profile = StaticProfile(
        registers=24, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0,
        barriers=0, code_bytes=16, instructions=1, opcodes={}, code_hash="",
    )  # fmt: skip
    occupancy = Occupancy(blocks_per_sm=8, warps_per_sm=48, fraction=0.75, limiter="registers")
    record = StaticRecord(kernel="copy", source_hash="", profile=profile, occupancy=occupancy)
    rounds = tuple(
        Round(session="s", process=0, samples=9, midmean=midmean, median=1, quantiles=(1, 1, 1, 1, 1), minimum=1,
              maximum=1)
        for midmean in (4000.0, 9000.0)
    )  # fmt: skip
    time = TimeRecord(identity=Identity(code="", launch=""), timer="graph", cache="cold", rounds=rounds, bytes=10**6)
    counted = {"sm__cycles_elapsed.max": 9.0}
    found = figures_of(
        evidence(static={"sm_90": msgspec.to_builtins(record)}, time=msgspec.to_builtins(time), counters=counted)
    )
    assert found == [
        {
            "module": "suite/test_copy.py", "test": "test_copy", "gpu": "nvidia-h200", "workload": "copy",
            "time_ns": pytest.approx(6000), "bytes": 10**6, "registers": 24, "occupancy": 0.75, "counters": counted,
        }
    ]  # fmt: skip


def test_figures_leave_out_what_was_not_measured_and_kernels_that_were_not_launched(report: ModuleType) -> None:
    figures_of = importlib.import_module("measured").figures_of
    assert [each.keys() for each in figures_of(evidence())] == [{"module", "test", "gpu", "workload"}]
    assert figures_of(evidence(launched=False)) == []


TESTS = """
    def test_stack(claim):
        claim("S4-01", 0, equals=0)

    def test_registers(claim):
        claim.skipped("S1-02", "a counter")
        claim("S7-01", 3, at_least=4)
        claim("S7-08", 0, equals=0)
"""


def copy_suite_into(folder: Path) -> None:
    for name in ("conftest.py", "claims.py", "claims.json", "measured.py", "siblings.py", "pairs.py", "pairs.json"):
        (folder / name).write_text((SUITE / name).read_text(encoding="utf-8"), encoding="utf-8")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one_process", "xdist"])
def test_outcomes_of_all_tests_are_written_whoever_ran_them(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    copy_suite_into(pytester.path)
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("--claims-to=found.json", *workers).assert_outcomes(passed=1, failed=1)
    assert json.loads((pytester.path / "found.json").read_text(encoding="utf-8")) == {
        "claims": [
            {"id": "S1-02", "verdict": "not measured", "measured": None, "reason": "a counter"},
            {"id": "S4-01", "verdict": "holds", "measured": 0, "expected": "exactly 0"},
            {"id": "S7-01", "verdict": "fails", "measured": 3, "expected": "at least 4"},
        ],
        "workloads": [],
    }


def test_a_file_in_no_folder_is_a_usage_error(pytester: pytest.Pytester) -> None:
    copy_suite_into(pytester.path)
    result = pytester.runpytest_subprocess("--claims-to=nowhere/found.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--claims-to=nowhere/found.json: there is no folder *nowhere"])
