"""``gpuperf init`` and ``gpuperf examples``: what they write, and what they leave alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_gpuperf.cli import init_command

COPIED = ("transpose32", "polynomial", "reduce_sum", "sample2_static_array", "occupancy_registers")
"""Families, each of which runs alone."""


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gpuperf-arch=sm_90", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_an_empty_repository_gets_a_test_that_gates(tmp_path, command):
    status, said, _ = command("init", tmp_path)
    assert (status, "pytest --update-baselines" in said) == (0, True)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        ".gitattributes", "axpy.cu", "gpuperf-constraints.txt", "gpuperf.yml", "pytest.ini", "test_axpy.py",
    ]  # fmt: skip
    workflow = (tmp_path / ".github/workflows/gpuperf.yml").read_text()
    assert "permissions: {contents: read}\n" in workflow
    assert "actions/checkout@v4\n        with: {fetch-depth: 0, persist-credentials: false}\n" in workflow
    assert gate(tmp_path, "--update-baselines").returncode == 0
    assert "1 workload: 1 UNCHANGED" in gate(tmp_path, "--gpuperf").stdout


def test_the_next_commands_depend_on_where_the_repository_is(tmp_path, command, monkeypatch):
    (tmp_path / ".git").mkdir()
    part = tmp_path / "gpu part"
    part.mkdir()
    status, said, _ = command("init", part)
    assert status == 0
    assert f"at the top of a repository alone, which is {tmp_path.resolve()}." in said
    assert 'defaults: {run: {working-directory: "gpu part"}}' in said
    assert "    git add . && git commit" in said
    assert "working-directory" not in command("init", tmp_path)[1]
    monkeypatch.setattr(init_command, "checkout_around", lambda _: None)
    status, said, _ = command("init", tmp_path)
    assert (status, "    git init && git add . && git commit" in said) == (0, True)


@pytest.mark.parametrize("mine", [b"# caf\xe9\n", b"*.png binary\r\n*.txt text", b""])
def test_nothing_is_overwritten_and_a_second_time_writes_nothing(tmp_path, command, mine):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    (tmp_path / ".gitattributes").write_bytes(mine)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "axpy.cu").write_text("// mine, and no kernel\n")
    command("init", tmp_path)
    assert (tmp_path / "kernels" / "axpy.cu").read_text() == "// mine, and no kernel\n"
    assert (tmp_path / "pytest.ini").read_text() == "[pytest]\naddopts = -q\n"
    attributes = (tmp_path / ".gitattributes").read_bytes()
    assert attributes == mine + b"\n" * (mine[-1:] not in (b"", b"\n")) + init_command.ATTRIBUTES + b"\n"
    assert "written" not in command("init", tmp_path)[1]
    assert (tmp_path / ".gitattributes").read_bytes() == attributes


def test_families_are_listed_and_copied_and_run_alone(tmp_path, command):
    status, said, _ = command("examples")
    assert (status, "bank_conflicts  " in said) == (0, True)
    target = tmp_path / "my examples"
    status, said, _ = command("examples", target, *COPIED)
    assert status == 0
    assert f"    cd '{target}'\n" in said
    assert sorted(path.name for path in target.rglob("*.cu")) == sorted(f"{name}.cu" for name in COPIED)
    assert f"pytest --gpuperf test_{COPIED[0]}.py" in said
    for flag in ("--update-baselines", "--gpuperf"):
        done = gate(target, flag, "-q")
        assert done.returncode == 0, done.stdout
    assert "UNCHANGED" in done.stdout
    for wrong, why in (("transpose32", "exists. Nothing was written"), ("transpose", "the closest is transpose32")):
        status, _, problem = command("examples", target, "matmul", wrong)
        assert (status, why in problem) == (1, True)
    assert not (target / "test_matmul.py").exists()
    command("examples", tmp_path / "matmul")  # as messages name it
    assert [path.name for path in tmp_path.glob("matmul/*.py")] == ["test_matmul.py"]


def test_a_folder_that_is_not_there_or_cannot_be_written_is_named(tmp_path, command):
    status, _, problem = command("init", tmp_path / "nowhere")
    assert (status, "nowhere is no folder" in problem) == (1, True)
    (tmp_path / ".github").write_text("a file where a folder has to be")
    status, _, problem = command("init", tmp_path)
    assert (status, f"Not a directory: '{tmp_path / '.github' / 'workflows'}'" in problem) == (1, True)
