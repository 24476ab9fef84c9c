"""What counters recorded on an H200 say of the example suite's claims, without a GPU: all hold, or are refuted."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import recorded_counters
from loaded_scripts import load_script

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SUITE = ROOT / "example_suite"
SCRIPT = ROOT / "benchmarks" / "record_claim_counters.py"
ABOUT_COUNTERS = re.compile(r'claim\.counter(?:_refuted)?\(\s*"([A-Z][A-Z0-9]*-\d{2})"')
TRANSPOSE = "example_suite/test_transpose32.py::test_transpose_of_a_batch"
TURNS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"


class Replay(NamedTuple):
    exit_status: int
    printed: str
    outcomes: Mapping[str, Mapping[str, Any]]
    """Of claims, by id."""


def replay(folder: Path, file: Path, *tests: str) -> Replay:
    """Run tests of the example suite, without a GPU, on the counters of a recording.

    It is a copy of the suite that is run, and gated too: then the kernels on record of a source are compiled together,
    and ``.gpuperf`` of this repository stays as it is.
    """
    outcomes = folder / "outcomes.json"
    shutil.copytree(SUITE, folder / SUITE.name)
    path = os.pathsep.join([str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "recorded_counters", "-q",
        f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={folder}",
        "--gpuperf", f"--gpuperf-baselines={ROOT / 'baselines'}", "--gpuperf-arch=sm_90",
        f"{recorded_counters.OPTION}={file}", f"--claims-to={outcomes}", *tests,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    claims = json.loads(outcomes.read_text(encoding="utf-8"))["claims"] if outcomes.exists() else []
    return Replay(done.returncode, done.stdout + done.stderr, {claim["id"]: claim for claim in claims})


@pytest.fixture(scope="module")
def recorded() -> recorded_counters.Recording:
    return recorded_counters.read(recorded_counters.FILE)


@pytest.fixture(scope="module")
def replayed(recorded: recorded_counters.Recording, tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return replay(tmp_path_factory.mktemp("replay"), recorded_counters.FILE, *sorted(recorded.counters))


def test_every_claim_about_counters_holds_or_is_refuted(replayed: Replay) -> None:
    assert replayed.exit_status == 0, replayed.printed
    asked = {name for file in SUITE.glob("test_*.py") for name in ABOUT_COUNTERS.findall(file.read_text("utf-8"))}
    assert len(asked) > 80
    verdicts = {name: replayed.outcomes.get(name, {}).get("verdict", "not reached") for name in asked}
    assert {name: said for name, said in verdicts.items() if said not in ("holds", "refuted")} == {}


def test_a_refuted_claim_says_why(replayed: Replay) -> None:
    refuted = [outcome for outcome in replayed.outcomes.values() if outcome["verdict"] == "refuted"]
    assert refuted
    assert [outcome["id"] for outcome in refuted if len(outcome["reason"]) < 40] == []


def test_no_other_figure_passes_for_a_recorded_one(tmp_path: Path) -> None:
    content = json.loads(recorded_counters.FILE.read_text(encoding="utf-8"))
    content["workloads"][TRANSPOSE]["transpose_coalesced"][content["metrics"].index(TURNS)] *= 2
    file = tmp_path / "altered.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    found = replay(tmp_path, file, TRANSPOSE)
    assert found.exit_status == 1
    assert "TR-09 does not hold: measured 64, expected exactly 32" in found.printed
    assert found.outcomes["TR-09"]["verdict"] == "fails"


def test_a_workload_that_was_not_recorded_is_not_measured(tmp_path: Path) -> None:
    content = json.loads(recorded_counters.FILE.read_text(encoding="utf-8"))
    del content["workloads"][TRANSPOSE]["transpose_padded"]
    file = tmp_path / "incomplete.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    found = replay(tmp_path, file, TRANSPOSE)
    assert found.outcomes["TR-09"]["verdict"] == "not measured"
    assert found.outcomes["TR-09"]["reason"].startswith("transpose_padded was not recorded: run benchmarks/record_")


# --- the script that keeps them ------------------------------------------------------------------


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_script(SCRIPT)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the script adds the suite
    return module


@pytest.fixture
def collected(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file as ``--gpuperf-ncu-json`` does."""

    def write(name: str, *, gpu: str = "nvidia-h200", **workloads: Mapping[str, float]) -> Path:
        file = tmp_path / name
        tests = {f"test_{name}": {work: {"counters": counters} for work, counters in workloads.items()}}
        file.write_text(json.dumps({"gpu": gpu, "ncu": "ncu 2025.3.1.0", "workloads": tests}), encoding="utf-8")
        return file

    return write


def test_counts_are_kept_exactly_and_shares_to_six_digits(
    script: ModuleType, collected: Callable[..., Path], tmp_path: Path
) -> None:
    parts = (
        collected("one.json", copy={"smsp__inst_executed.sum": 1234567891.0, "lts__t_sector_hit_rate.pct": 12.3456789}),
        collected("two.json", copy={"smsp__inst_executed.sum": 2.0, "unknown__metric.sum": 3.0}),
    )
    assert script.main([*map(str, parts), "--to", str(tmp_path)]) == 0
    assert recorded_counters.read(tmp_path / "nvidia-h200.json").counters == {
        "test_one.json": {"copy": {"smsp__inst_executed.sum": 1234567891, "lts__t_sector_hit_rate.pct": 12.3457}},
        "test_two.json": {"copy": {"smsp__inst_executed.sum": 2}},
    }


def test_parts_of_different_gpus_are_refused(
    script: ModuleType, collected: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = collected("one.json", copy={"a": 1.0}), collected("two.json", gpu="nvidia-l4", copy={"a": 1.0})
    assert script.main([str(part) for part in parts]) == 1
    assert "from different GPUs or versions of ncu" in capsys.readouterr().err


def test_another_file_is_refused(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}", encoding="utf-8")
    assert script.main([str(file)]) == 1
    assert "other.json is not what --gpuperf-ncu-json writes" in capsys.readouterr().err


def test_the_recording_is_what_the_script_writes(script: ModuleType, recorded: recorded_counters.Recording) -> None:
    text = recorded_counters.FILE.read_text(encoding="utf-8")
    workloads = {
        test: {name: {"counters": counters} for name, counters in of.items()} for test, of in recorded.counters.items()
    }
    metrics = json.loads(text)["metrics"]
    assert script.text_of(recorded.gpu, recorded.ncu, metrics, workloads) == text


def test_the_recording_has_every_metric_that_the_suite_reads(
    recorded: recorded_counters.Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    metrics = json.loads(recorded_counters.FILE.read_text(encoding="utf-8"))["metrics"]
    assert set(metrics) == importlib.import_module("counters").METRICS
