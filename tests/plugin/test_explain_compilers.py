"""``explain`` where baselines are of another compiler, or of several compilers or GPUs."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import Suite

from pytest_gpuperf.cli.command_line import main

OTHER = "test_suite.py::test_other"


@pytest.fixture
def one_recorded(suite: Suite) -> Suite:
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    return suite


def test_a_baseline_of_another_compiler_is_not_called_missing(one_recorded, monkeypatch, capsys):
    one_recorded.blame_another_compiler()
    result = one_recorded.run("--gpuperf", "--gpuperf-explain", "-k", "other")
    result.stdout.fnmatch_lines(
        ["*baseline: none that this workload can be compared with", "*doubling  NOT-COMPARABLE  on sm_90*"]
    )
    monkeypatch.chdir(one_recorded.path)
    assert main(["explain", OTHER]) == 0
    said = capsys.readouterr().out
    assert "none that this workload can be compared with" in said
    assert "record one with pytest --update-baselines\n" not in said


def test_baselines_of_several_compilers_are_told_apart(one_recorded, monkeypatch, capsys):
    monkeypatch.chdir(one_recorded.path)
    assert main(["explain", "--baseline", OTHER]) == 0
    assert "compiler:" not in capsys.readouterr().out
    path = one_recorded.path / "baselines/sm_90/test_suite.jsonl"
    compiler = next(iter(read_evidence(path)["toolchains"]))
    one_recorded.blame_another_compiler()
    one_recorded.run("--update-baselines=new", "-k", "other")
    capsys.readouterr()
    assert main(["explain", "--baseline", OTHER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count(f"{OTHER} [doubling]") == 2
    assert [line.strip() for line in lines if "compiler:" in line] == [
        f"compiler: {compiler.replace('nvrtc 13.', 'nvrtc 12.')}", f"compiler: {compiler}"
    ]  # fmt: skip


def test_baselines_of_several_gpus_are_told_apart(recorded, monkeypatch, capsys):
    monkeypatch.chdir(recorded.path)
    assert main(["explain", "--baseline", OTHER]) == 0
    assert "GPU:" not in capsys.readouterr().out
    text = (recorded.path / "baselines/simulated-gpu/test_suite.jsonl").read_text()
    (recorded.path / "baselines/another-gpu").mkdir()
    (recorded.path / "baselines/another-gpu/test_suite.jsonl").write_text(text.replace("simulated-gpu", "another-gpu"))
    assert main(["explain", "--baseline", OTHER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count(f"{OTHER} [doubling]") == 2
    assert [line.strip() for line in lines if "GPU:" in line] == ["GPU: another-gpu", "GPU: simulated-gpu"]
