"""What an H200 recorded says of the example suite's claims, without a GPU."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loaded_scripts import load_script

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SUITE = ROOT / "example_suite"
SCRIPT = ROOT / "benchmarks" / "record_claim_counters.py"
TRANSPOSE = "example_suite/test_transpose32.py::test_transpose_of_a_batch"
NCU = ("--ncu", "ncu 2025.3.1.0")
TURNS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"


@pytest.fixture(scope="module", autouse=True)
def paths() -> Any:
    """As the scripts have it: the suite and the other scripts are found by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(SCRIPT.parent), str(SUITE), *sys.path])
        yield


@pytest.fixture(scope="module")
def replaying(paths: None) -> ModuleType:
    return importlib.import_module("replay_claims")


@pytest.fixture(scope="module")
def recorded_run(paths: None) -> ModuleType:
    return importlib.import_module("recorded_run")


@pytest.fixture(scope="module")
def recorded(recorded_run: ModuleType) -> Any:
    return recorded_run.read(recorded_run.FILE)


@pytest.fixture(scope="module")
def replayed(replaying: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return replaying.replay(tmp_path_factory.mktemp("replay"))


def test_no_claim_says_otherwise_than_what_was_recorded(replayed: Any) -> None:
    """Most claims of every kind that can do without data on a GPU are looked at."""
    assert replayed.exit_status == 0, replayed.printed
    known = importlib.import_module("claims").load_claims()
    measured = [known[name].kind for name, outcome in replayed.found.claims.items() if outcome["measured"] is not None]
    for kind, least in {"time": 0.6, "counter": 0.85, "static": 0.9}.items():
        assert measured.count(kind) > least * sum(claim.kind == kind for claim in known.values()), kind


def test_what_needs_data_is_put_on_record_as_such(replaying: ModuleType, replayed: Any) -> None:
    found = replaying.completed(replayed.found)
    assert "EXP-02" not in replayed.found.claims
    assert found.claims["EXP-02"]["missing"] == replaying.NEEDS_DATA
    assert found.run.source == "replay"
    assert (found.run.gpu, found.run.toolchain) == ("NVIDIA H200", "nvrtc 13.0.88")
    (padded,) = [one for one in found.workloads if one["workload"] == "transpose_padded" and "time_ns" in one]
    assert (padded["registers"], padded["occupancy"], padded["bytes"]) == (12, 1.0, 1_638_400_000)


def altered(recorded_run: ModuleType, folder: Path, change: Callable[[dict[str, Any], list[str]], None]) -> Path:
    content = json.loads(recorded_run.FILE.read_text(encoding="utf-8"))
    change(content["workloads"][TRANSPOSE], content["metrics"])
    file = folder / "altered.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_no_other_figure_passes_for_a_recorded_one(
    replaying: ModuleType, recorded_run: ModuleType, tmp_path: Path
) -> None:
    def double(workloads: dict[str, Any], metrics: list[str]) -> None:
        workloads["transpose_coalesced"][metrics.index(TURNS)] *= 2

    found = replaying.replay(tmp_path, TRANSPOSE, counters=altered(recorded_run, tmp_path, double))
    assert found.exit_status == 1
    assert "TR-09 has changed: measured 64, found before exactly 32" in found.printed
    assert found.found.claims["TR-09"]["verdict"] == "contradicted"


def test_a_workload_that_was_not_recorded_is_not_measured(
    replaying: ModuleType, recorded_run: ModuleType, tmp_path: Path
) -> None:
    def forget(workloads: dict[str, Any], _: list[str]) -> None:
        del workloads["transpose_coalesced"]

    found = replaying.replay(tmp_path, TRANSPOSE, counters=altered(recorded_run, tmp_path, forget))
    outcome = found.found.claims["TR-09"]
    assert outcome["verdict"] == "not measured"
    assert outcome["missing"].startswith("transpose_coalesced was not recorded: run benchmarks/record_")


def test_a_time_that_was_not_recorded_is_no_figure_and_chooses_none(recorded_run: ModuleType) -> None:
    unknown = recorded_run.Unrecorded("signs")
    for figure in (2 * unknown, unknown / 3.0, 1.0 - unknown, unknown**2, -unknown, sum([1.0, unknown])):
        assert isinstance(figure, recorded_run.Unrecorded)
    recorded_run.Unrecorded.compared = ""
    assert min(1.0, unknown) is not None
    assert recorded_run.Unrecorded.compared == "signs"


# --- the script that keeps them ------------------------------------------------------------------


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_script(SCRIPT)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the script adds the suite
    return module


@pytest.fixture
def collected(tmp_path: Path) -> Callable[..., Path]:
    """Writes a report with counters."""

    def write(name: str, *, gpu: str = "nvidia-h200", **workloads: Mapping[str, float]) -> Path:
        file = tmp_path / name
        works = [{"key": {"workload": work}, "counters": counters} for work, counters in workloads.items()]
        test = {"module": "t.py", "test": name, "device": {"slug": gpu, "uuid": "GPU-1"}, "workloads": works}
        file.write_text(json.dumps({"tests": [test]}), encoding="utf-8")
        return file

    return write


def test_counts_are_kept_exactly_and_shares_to_six_digits(
    script: ModuleType, recorded_run: ModuleType, collected: Callable[..., Path], tmp_path: Path
) -> None:
    parts = (
        collected("one.json", copy={"smsp__inst_executed.sum": 1234567891.0, "lts__t_sector_hit_rate.pct": 12.3456789}),
        collected("two.json", copy={"smsp__inst_executed.sum": 2.0, "unknown__metric.sum": 3.0}),
    )
    assert script.main([*map(str, parts), *NCU, "--to", str(tmp_path)]) == 0
    assert recorded_run.read(tmp_path / "nvidia-h200.json").counters == {
        "t.py::one.json": {"copy": {"smsp__inst_executed.sum": 1234567891, "lts__t_sector_hit_rate.pct": 12.3457}},
        "t.py::two.json": {"copy": {"smsp__inst_executed.sum": 2}},
    }


def test_parts_of_different_gpus_are_refused(
    script: ModuleType, collected: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = collected("one.json", copy={"a": 1.0}), collected("two.json", gpu="nvidia-l4", copy={"a": 1.0})
    assert script.main([*map(str, parts), *NCU]) == 1
    assert "from different GPUs" in capsys.readouterr().err


def test_another_file_is_refused(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}", encoding="utf-8")
    assert script.main([str(file), *NCU]) == 1
    assert "other.json is not what --gpuperf-report writes" in capsys.readouterr().err


def test_the_recording_is_what_the_script_writes(script: ModuleType, recorded_run: ModuleType, recorded: Any) -> None:
    text = recorded_run.FILE.read_text(encoding="utf-8")
    workloads = {
        test: {name: {"counters": counters} for name, counters in of.items()} for test, of in recorded.counters.items()
    }
    metrics = json.loads(text)["metrics"]
    assert script.text_of(recorded.gpu, recorded.ncu, metrics, workloads) == text


def test_the_recording_has_every_metric_that_the_suite_reads(
    recorded_run: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    metrics = json.loads(recorded_run.FILE.read_text(encoding="utf-8"))["metrics"]
    assert set(metrics) == importlib.import_module("counters").METRICS
