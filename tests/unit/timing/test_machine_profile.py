"""Machine profiles: kept, found again, and refused where the file is not what it should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.timing.machine_profile import (
    LARGEST_BYTES,
    MachineProfile,
    ProfileError,
    load_profile,
    omega_of,
    profile_path,
    save_profile,
)

FIRST = MachineProfile(
    uuid="GPU-1", gpu="Simulated GPU", date="2026-11-21T10:00:00Z", driver="580.0", timer="cupti", tick_ns=32.0,
    overhead_ns=1.0, omega=0.0015, round_sd=0.0005, block_sd=0.001, placement_sd=0.0002, plugin="0.1.0",
)  # fmt: skip


def changed(profile: MachineProfile = FIRST, **fields: Any) -> MachineProfile:
    return msgspec.structs.replace(profile, **fields)


def test_a_profile_is_found_again_by_its_gpu(profile_file: Path) -> None:
    assert load_profile("GPU-1") is None
    assert save_profile(FIRST) == profile_file
    save_profile(changed(uuid="GPU-2", omega=0.003))
    assert load_profile("GPU-1") == FIRST
    assert load_profile("GPU-2") == changed(uuid="GPU-2", omega=0.003)
    assert load_profile("GPU-3") is None


def test_a_later_profile_takes_the_place_of_an_earlier_one(profile_file: Path) -> None:
    save_profile(FIRST)
    save_profile(changed(omega=0.004))
    assert load_profile("GPU-1") == changed(omega=0.004)
    assert [path.name for path in profile_file.parent.iterdir() if path.suffix != ".lock"] == ["machine.json"]


def test_the_gate_takes_omega_only_for_the_timer_that_measured_it(profile_file: Path) -> None:
    assert omega_of("GPU-1", "cupti") is None
    save_profile(FIRST)
    assert omega_of("GPU-1", "cupti") == 0.0015
    assert omega_of("GPU-1", "graph") is None
    assert omega_of("GPU-2", "cupti") is None


def test_the_file_lies_in_the_users_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GPUPERF_MACHINE_PROFILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profile_path() == tmp_path / "pytest-gpuperf" / "machine.json"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert profile_path() == tmp_path / ".config" / "pytest-gpuperf" / "machine.json"


def a_document(**fields: Any) -> str:
    profile = {**msgspec.to_builtins(FIRST), **fields}
    return json.dumps({"schema": 1, "profiles": {"GPU-1": profile}})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no machine profiles"),
        ("[]", "holds no machine profiles"),
        ("\xff\xfe", "holds no machine profiles"),
        ('{"schema": 2, "profiles": {}}', "newer gpuperf"),
        ('{"schema": 1}', "holds no machine profiles"),
        (a_document(omega=0.0), "omega"),
        (a_document(omega=0.21), "omega"),
        (a_document(omega="0.001"), "omega"),
        (a_document(tick_ns=-1.0), "tick_ns"),
        (a_document(block_sd=-0.1), "block_sd"),
        (a_document().replace("0.0015", "NaN"), "holds no machine profiles"),
        (a_document(timer="stopwatch"), "timer"),
        (a_document(command="rm"), "command"),
        (a_document(uuid="GPU-2"), "another GPU under 'GPU-1'"),
        (" " * (LARGEST_BYTES + 1), "larger than"),
        ("[" * 100_000, "holds no machine profiles"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused_with_advice(
    profile_file: Path, content: str, words: str
) -> None:
    profile_file.parent.mkdir()
    profile_file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ProfileError, match=words) as refused:
        load_profile("GPU-1")
    assert str(profile_file) in str(refused.value)
    assert "delete it and run gpuperf selftest" in str(refused.value)
    with pytest.raises(ProfileError, match=words):
        save_profile(FIRST)
    assert profile_file.read_bytes() == content.encode("latin-1"), "what is not understood is not overwritten"


def test_a_file_that_cannot_be_read_is_an_error(profile_file: Path) -> None:
    profile_file.mkdir(parents=True)
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile("GPU-1")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfileError, match=r"cannot be written.*GPUPERF_MACHINE_PROFILE"):
        save_profile(FIRST, tmp_path / "file" / "machine.json")


def test_an_interrupted_write_leaves_the_old_file(profile_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_profile(FIRST)

    def interrupted(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_profile(changed(omega=0.004))
    monkeypatch.undo()
    assert load_profile("GPU-1", profile_file) == FIRST
    assert [path.name for path in profile_file.parent.iterdir() if path.suffix != ".lock"] == ["machine.json"]
