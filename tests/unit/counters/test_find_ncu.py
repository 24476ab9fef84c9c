"""Where ncu is looked for, and which version will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.counters import run_ncu
from pytest_gpuperf.counters.run_ncu import CountersUnavailable, find_ncu

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
    assert (found.path, found.version, str(found)) == (own, (2025, 3, 1, 0), "ncu 2025.3.1.0")


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_the_toolkits_variables_are_asked(tmp_path, monkeypatch, variable):
    own = program(tmp_path / "toolkit" / "bin", says("2022.4.0"))
    monkeypatch.setenv(variable, str(tmp_path / "toolkit"))
    assert find_ncu().path == own


def test_the_newest_toolkit_is_looked_at_first(tmp_path, monkeypatch):
    for version in ("12.0", "13.0"):
        program(tmp_path / f"cuda-{version}" / "bin", "printf hello")
    monkeypatch.setattr(run_ncu, "FOLDERS", (f"{tmp_path}/cuda*/bin".lstrip("/"),))
    found = find_ncu()
    assert (found.path, str(found)) == (tmp_path / "cuda-13.0" / "bin" / "ncu", "ncu of unknown version")


@pytest.mark.parametrize(("script", "words"), [
    (None, "neither on PATH nor in a CUDA toolkit; install Nsight Compute"), ("exit 3", "exit status 3"),
    ("echo broken >&2; exit 127", "broken"), (says("2022.3.9"), "ncu 2022.3.9 is too old: 2022.4 is needed; install"),
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, monkeypatch, script, words):
    monkeypatch.setattr(run_ncu, "FOLDERS", ())
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if script is not None:
        program(tmp_path, script)
    with pytest.raises(CountersUnavailable, match=words):
        find_ncu()
