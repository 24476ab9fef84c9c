"""The real machine behind the probes."""

from __future__ import annotations

import pytest

from pytest_gpuperf.doctor.findings import HostMachine


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
