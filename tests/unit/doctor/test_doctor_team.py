"""What the doctor says of a machine beside what the team has declared."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from pytest_gpuperf.doctor.gpus import probe_team
from pytest_gpuperf.doctor.probes import VERSION


@pytest.fixture
def team(gpu_machine, tmp_path: Path):
    machine, plug = gpu_machine
    machine.folder = tmp_path
    machine.modules[VERSION] = types.SimpleNamespace(toolchain=lambda: "nvrtc 13.0.88")
    plug(count=1)
    declare(tmp_path)
    return machine


def declare(folder: Path, **changes: object) -> None:
    usual = {"architectures": [], "gpu_models": ["nvidia-h200"], "schema": 2, "toolchains": ["nvrtc 13.0.88"]}
    (folder / "manifest.json").write_text(json.dumps({**usual, **changes}))
    (folder / "nvidia-h200").mkdir(exist_ok=True)
    (folder / "nvidia-h200" / "test_a.jsonl").write_text("{}")


def found(machine) -> dict[str, tuple[str, str, str]]:
    return {one.name: (one.status, one.detail, one.advice) for one in probe_team(machine)}


def test_a_machine_of_the_team_is_fine(team) -> None:
    assert found(team) == {
        "team's NVRTC": ("ok", "the team declares nvrtc 13.0.88; this machine has nvrtc 13.0.88", ""),
        "team's GPUs": ("ok", "the team has times of nvidia-h200; this machine has nvidia-h200", ""),
    }


def test_another_compiler_is_told_both_ways_out(team, tmp_path: Path) -> None:
    declare(tmp_path, toolchains=["nvrtc 12.9.86", "nvrtc 13.2.86"])
    status, detail, advice = found(team)["team's NVRTC"]
    assert status == "warn"
    assert detail.endswith("; this machine has nvrtc 13.0.88")
    assert "nvidia-cuda-nvrtc==13.2.86" in advice
    assert "pytest --update-baselines=new" in advice


def test_another_gpu_is_named(team, tmp_path: Path) -> None:
    declare(tmp_path, gpu_models=["nvidia-a100"])
    (tmp_path / "nvidia-a100").mkdir()
    (tmp_path / "nvidia-a100" / "test_a.jsonl").write_text("{}")
    status, detail, _ = found(team)["team's GPUs"]
    assert (status, detail) == ("warn", "the team has times of nvidia-a100; this machine has nvidia-h200")


def test_a_target_without_records_is_named_with_the_remedy(team, tmp_path: Path) -> None:
    declare(tmp_path, architectures=["sm_80"])
    status, detail, advice = found(team)["targets"]
    assert (status, detail) == ("warn", "without records: sm_80")
    assert "gpuperf baselines rm" in advice


def test_a_machine_without_compiler_or_gpu_hears_what_the_team_has(team) -> None:
    del team.modules[VERSION], team.modules["pynvml"]
    assert {status for status, _, _ in found(team).values()} == {"ok"}


def test_without_a_manifest_there_is_nothing_to_say(team, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").unlink()
    assert probe_team(team) == []
    team.folder = None
    assert probe_team(team) == []


def test_a_manifest_that_cannot_be_read_is_named(team, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[")
    assert found(team)["manifest"][0] == "warn"
