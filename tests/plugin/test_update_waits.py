"""An update that meets another one of the same baselines waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_gpuperf.baselines import writing
from pytest_gpuperf.baselines.store import BaselineStore

HOLDER = """
import pathlib, sys
from pytest_gpuperf.baselines import writing
with writing.exclusive(pathlib.Path("baselines")):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(suite):
    """A process that writes these baselines until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=suite.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_an_update_that_waited_too_long_writes_nothing_and_is_red(suite, holder, monkeypatch):
    monkeypatch.setattr(writing.exclusive.__wrapped__, "__defaults__", (0.2,))
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    assert result.ret != 0
    result.stdout.fnmatch_lines([
        "*another run has been writing these baselines for more than 0.2 s. Nothing was written.*",
        "*Wait for it to end, or stop it, and run the update again.*",
    ])  # fmt: skip
    assert BaselineStore(suite.path / "baselines").archs() == ()


def test_a_gated_run_takes_no_lock(suite, holder, monkeypatch):
    monkeypatch.setattr(writing.exclusive.__wrapped__, "__defaults__", (0.0,))
    assert "another run" not in suite.run("--gpuperf", "--gpuperf-arch=sm_90").stdout.str()
