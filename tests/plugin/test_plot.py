"""``gpuperf plot``: a sweep of a parametrised test."""

from __future__ import annotations

import json
import re

import pytest

from pytest_gpuperf.cli.command_line import main


@pytest.fixture
def swept(gpu_suite, monkeypatch):
    """``test_work[1024]`` and ``test_work[2048]`` of the suite, measured."""
    assert gpu_suite.run("--gpuperf", "--gpuperf-report=run.json").ret == 0
    monkeypatch.chdir(gpu_suite.path)
    return gpu_suite


def test_a_sweep_is_printed_and_drawn(swept, capsys):
    wanted = ["plot", "test_suite.py::test_work", "--x", "size"]
    assert main([*wanted, "--output", "sweep.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "work"
    assert [line.split()[0] for line in lines[1:3]] == ["size=1024", "size=2048"]
    page = (swept.path / "sweep.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["x"] == [1024, 2048]
    assert len(data["curves"][0]["values"]) == 2
    assert "https://" not in page.replace("https://github.com/leeoniya/uPlot", "")
    assert main([*wanted, "--y", "bandwidth", "--report", "run.json"]) == 0
    assert "B/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["test_suite.py::test_none", "--x", "size"], "parametrised ones are test_suite.py::test_work"),
     (["test_suite.py::test_work", "--x", "length"], "it has size"),
     (["test_suite.py::test_work[1024]", "--x", "size"],
      "name the test without its parameters, as all of them are drawn: gpuperf plot test_suite.py::test_work --x size"),
     (["test_suite.py::test_work", "--x", "size", "--output", "none/a.html"], "(there is no folder none): make it, or"),
     (["test_suite.py::test_work", "--x", "size", "--y", "flops"], "declares flops=")],
)  # fmt: skip
def test_what_cannot_be_drawn_says_what_there_is(swept, capsys, arguments, says):
    assert main(["plot", *arguments]) == 1
    assert says in capsys.readouterr().err
