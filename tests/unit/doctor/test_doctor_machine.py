"""The real machine behind the probes."""

from __future__ import annotations

import sys

import pytest

from pytest_gpuperf.doctor.findings import HostMachine, ProgramError


def test_reads_what_is_there_and_nothing_else(tmp_path):
    file = tmp_path / "params"
    file.write_text("A: 1\n", encoding="utf-8")
    assert HostMachine().read(str(file)) == "A: 1\n"
    assert HostMachine().read(str(tmp_path / "none")) is None


def test_versions_of_distributions():
    assert HostMachine().version("pytest") == pytest.__version__
    assert HostMachine().version("no-such-distribution") is None


def test_environment(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert HostMachine().environ("CUDA_VISIBLE_DEVICES") == "3"


def test_a_module_that_is_not_there_is_an_import_error():
    assert HostMachine().load("json").__name__ == "json"
    with pytest.raises(ImportError):
        HostMachine().load("no_such_module")


def test_finds_programs_on_path_and_then_the_newest_in_the_folders(tmp_path, monkeypatch):
    for version in ("12.0", "13.0"):
        program = tmp_path / f"cuda-{version}" / "bin" / "tool"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    plain = tmp_path / "cuda-14.0" / "bin" / "tool"
    plain.parent.mkdir(parents=True)
    plain.write_text("not a program\n", encoding="utf-8")
    monkeypatch.setenv("PATH", "/nowhere")
    folders = (f"{tmp_path}/cuda-*/bin",)
    assert HostMachine().find("tool", folders) == str(tmp_path / "cuda-13.0" / "bin" / "tool")
    assert HostMachine().find("tool") is None
    monkeypatch.setenv("PATH", str(tmp_path / "cuda-12.0" / "bin"))
    assert HostMachine().find("tool", folders) == str(tmp_path / "cuda-12.0" / "bin" / "tool")


def test_runs_a_program_and_says_how_it_failed():
    assert HostMachine().run(sys.executable, "-c", "print('hi')") == "hi\n"
    with pytest.raises(ProgramError, match="exit status 3: oh no"):
        HostMachine().run(sys.executable, "-c", "import sys; sys.stderr.write('oh no'); sys.exit(3)")
    with pytest.raises(ProgramError, match="no-such-program"):
        HostMachine().run("no-such-program")
