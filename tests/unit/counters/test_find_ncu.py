"""Where ncu is looked for, and which version will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.counters import run_ncu
from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.counters.run_ncu import find_ncu, too_old, version_of

WORDS = "NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion {} (build 36398880) (public-release)"


def program(folder: Path, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f'printf "{WORDS.format(version)}\\n"'


@pytest.fixture(autouse=True)
def no_program(monkeypatch):
    """Nothing is installed but what a test puts there."""
    monkeypatch.setenv("PATH", "")
    for name in run_ncu.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_path_wins_over_the_toolkit(tmp_path, monkeypatch):
    own = program(tmp_path / "path", says("2025.3.1.0"))
    program(tmp_path / "toolkit" / "bin", says("2024.1.0.0"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    found = find_ncu()
    assert (found.path, found.version) == (own, (2025, 3, 1, 0))
    assert str(found) == "ncu 2025.3.1.0"


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_the_toolkits_variables_are_asked(tmp_path, monkeypatch, variable):
    own = program(tmp_path / "toolkit" / "bin", says("2024.1.0.0"))
    monkeypatch.setenv(variable, f"{tmp_path / 'toolkit'}/")
    assert find_ncu().path == own


def test_no_ncu_says_what_to_install(monkeypatch):
    monkeypatch.setattr(run_ncu, "FOLDERS", ())
    with pytest.raises(CountersUnavailable) as problem:
        find_ncu()
    assert "install Nsight Compute" in problem.value.remedy


@pytest.mark.parametrize(("script", "words"), [("exit 3", "exit status 3"), ("echo broken >&2; exit 127", "broken")])
def test_an_ncu_that_does_not_run_is_told_from_one_that_is_missing(tmp_path, script, words, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, script)
    with pytest.raises(CountersUnavailable) as problem:
        find_ncu()
    assert words in problem.value.reason


def test_an_old_version_is_refused_with_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, says("2021.3.1.0"))
    with pytest.raises(CountersUnavailable) as problem:
        find_ncu()
    assert "2021.3.1.0 is too old: 2022.4 is needed" in problem.value.reason


def test_versions_are_read_and_compared():
    assert version_of(WORDS.format("2022.4.0.0")) == (2022, 4, 0, 0)
    assert version_of("hello") == ()
    assert too_old(()) == ""
    assert too_old((2022, 4, 0)) == ""
    assert too_old((2022, 3, 9))
