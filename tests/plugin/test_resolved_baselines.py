"""Baselines of two branches that changed the same kernel: resolved, and recorded anew by the command that is named."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from pytest_gpuperf.cli.command_line import main

ARCH = "--gpuperf-arch=sm_90"


@pytest.fixture
def merge(suite, capsys, monkeypatch):
    """Leaves baselines in conflict on which both sides changed ``work``, and says what ``gpuperf resolve`` does."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=suite.path, capture_output=True, check=False)

    def record(factor):
        suite.write("work.cu", original.replace("x * 1.5f", factor))
        assert suite.run("--update-baselines=all", ARCH).ret == 0
        git("add", "-A")
        git("commit", "-q", "-m", factor)

    def make(start="."):
        git("init", "-q", "-b", "ours")
        record("x * 1.5f")
        git("checkout", "-q", "-b", "theirs")
        record("x * 1.5f / x")
        git("checkout", "-q", "ours")
        record("x * 1.5f * x * x")
        git("merge", "theirs")
        suite.write("work.cu", original.replace("x * 1.5f", "x * 1.5f * x * x / x"))
        assert suite.run("--gpuperf", ARCH).ret != 0
        capsys.readouterr()
        monkeypatch.chdir(suite.path / start)
        assert main(["resolve", "--baselines", str(suite.path / "baselines")]) == 0
        return capsys.readouterr().out.splitlines()

    original = (suite.path / "work.cu").read_text()
    return make


def test_the_command_that_resolve_names_records_what_both_sides_changed(suite, merge):
    [command] = [line for line in merge() if line.startswith("  pytest ")]
    assert "test_suite.py::test_other" not in command
    assert suite.run(*shlex.split(command)[1:], ARCH).ret == 0
    assert suite.run("--gpuperf", ARCH).ret == 0


def test_the_command_works_where_resolve_was_started_below_the_root(suite, merge, monkeypatch):
    (suite.path / "below").mkdir()
    [command] = [line for line in merge("below") if line.startswith("  ") and "pytest" in line]
    words = shlex.split(command)
    assert words[:3] == ["cd", str(suite.path), "&&"]
    monkeypatch.chdir(suite.path)
    assert suite.run(*words[4:], ARCH).ret == 0
