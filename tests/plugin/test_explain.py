"""Causes under a red verdict, and ``gpuperf explain``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from suite_under_test import HOG

from pytest_gpuperf.cli.command_line import main

COPY = """
extern "C" __global__ void copy(const float* a, float* b)
{
    b[threadIdx.y * 32 + threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
}
"""
TESTS = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))

def test_copy(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("copy.cu", "copy")
    a, b = gpu.random(1024, seed=1), gpu.empty(1024)
    gpuperf(kernel.launch(grid=1, block=(32, 32), args=(a, b)), name="rows")
"""
ARCHS = "--gpuperf-arch=sm_80,sm_90,sm_120"


@pytest.fixture
def explained(suite):
    suite.write("hog.cu", HOG)
    suite.write("copy.cu", COPY)
    suite.write("test_hog.py", TESTS)
    (suite.path / "test_suite.py").unlink()
    suite.run("--update-baselines", ARCHS)
    return suite


def spill(suite) -> None:
    suite.edit("test_hog.py", "options=[]", 'options=["-maxrregcount=32"]')


def scatter(suite) -> None:
    suite.edit("copy.cu", "b[threadIdx.y * 32 + threadIdx.x]", "b[threadIdx.x * 32 + threadIdx.y]")


def message(result: pytest.RunResult) -> list[str]:
    """Lines of the failure."""
    lines = result.stdout.lines
    first = next(n for n, line in enumerate(lines) if "WORSE" in line)
    last = next(n for n, line in enumerate(lines) if "If this change is intended" in line)
    return lines[first : last + 1]


def test_a_red_workload_says_its_cause_and_remedy_on_one_screen(explained):
    spill(explained)
    result = explained.run("--gpuperf", "-k", "hog")
    assert result.ret == 1
    lines = message(result)
    assert len(lines) <= 24
    assert all(len(line) <= 100 for line in lines)
    text = "\n".join(lines)
    for words in ("hog  WORSE  on sm_80", "spill stores 0 -> ", "cause: register spilling (sm_",
                  "-> raise or drop -maxrregcount", "example: occupancy_registers"):  # fmt: skip
        assert words in text


def test_the_cause_rides_through_pytest_xdist(explained):
    spill(explained)
    result = explained.run("--gpuperf", "-n", "2", subprocess=True)
    assert "cause: register spilling" in result.stdout.str()


def test_a_changed_kernel_that_does_not_fail_is_explained_on_request(explained, monkeypatch, capsys):
    scatter(explained)
    plain = explained.run("--gpuperf", "--gpuperf-advisory")
    assert plain.ret == 0
    plain.stdout.fnmatch_lines(["*::test_copy: rows  WORSE *", "    cause: uncoalesced access (sm_80)*"])
    status, out, _ = run_command(explained, monkeypatch, capsys, "test_hog.py::test_copy")
    assert status == 0
    for words in ("test_hog.py::test_copy [rows]", "state: unknown: ", "figures: ", " registers",
                  "baseline: the machine code differs", "cause: uncoalesced access (sm_80)",
                  "sectors per global request 4 -> 18,"):  # fmt: skip
        assert words in out


def test_unchanged_kernels_have_no_cause(explained, monkeypatch, capsys):
    assert explained.run("--gpuperf").ret == 0
    _, out, _ = run_command(explained, monkeypatch, capsys)
    assert out.count("cause:") == out.count("cause: none found") == 2


def run_command(suite, monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.chdir(suite.path)
    capsys.readouterr()
    status = main(["explain", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_last_run_is_explained_afterwards(explained, monkeypatch, capsys):
    spill(explained)
    explained.run("--gpuperf")
    status, out, err = run_command(explained, monkeypatch, capsys, "test_hog.py::test_hog")
    assert (status, err) == (0, "")
    assert "cause: register spilling" in out
    assert "test_copy" not in out
    inside = explained.path / "deeper"
    inside.mkdir()
    monkeypatch.chdir(inside)
    assert main(["explain", "test_hog.py"]) == 0
    assert "test_hog.py::test_copy [rows]" in capsys.readouterr().out


def test_a_test_is_found_by_its_path_as_seen_from_below(suite, monkeypatch, capsys):
    below = suite.path / "deep"
    below.mkdir()
    for name in ("test_suite.py", "work.cu", "other.cu"):
        (suite.path / name).rename(below / name)
    suite.run("--update-baselines")
    suite.run("--gpuperf")
    monkeypatch.chdir(below)
    for named in ("test_suite.py", "./test_suite.py", str(below / "test_suite.py"), "deep/test_suite.py"):
        capsys.readouterr()
        assert main(["explain", named]) == 0, capsys.readouterr().err
        assert "deep/test_suite.py::test_" in capsys.readouterr().out


def test_one_workload_can_be_asked_for_by_name(explained, monkeypatch, capsys):
    explained.run("--gpuperf")
    status, out, _ = run_command(explained, monkeypatch, capsys, "test_hog.py::test_copy [rows]")
    assert (status, "[rows]" in out) == (0, True)
    status, _, err = run_command(explained, monkeypatch, capsys, "test_hog.py::test_copy [columns]")
    assert (status, "close to it: test_hog.py::test_copy [rows]" in err) == (1, True)


def test_an_unknown_node_id_is_answered_with_close_ones(explained, monkeypatch, capsys):
    explained.run("--gpuperf")
    status, _, err = run_command(explained, monkeypatch, capsys, "test_hog.py::test_hogs")
    assert status == 1
    assert "test_hog.py::test_hogs is not in the last run; close to it: test_hog.py::test_hog [hog]" in err


def test_no_last_run_is_said_with_what_to_do(suite, monkeypatch, capsys):
    status, _, err = run_command(suite, monkeypatch, capsys, "test_suite.py")
    assert status == 1
    assert "run pytest --gpuperf first" in err


@pytest.mark.parametrize("content", ["{", '{"schema": 99}'])
def test_a_damaged_last_run_is_refused_by_name(explained, monkeypatch, capsys, content):
    explained.run("--gpuperf")
    (explained.path / ".gpuperf/last-run.json").write_text(content)
    status, _, err = run_command(explained, monkeypatch, capsys, "test_hog.py")
    assert status == 1
    assert "last-run.json" in err
    assert "run pytest --gpuperf again" in err


def last_run(suite) -> Path:
    return suite.path / ".gpuperf/last-run.json"


def test_a_run_leaves_its_evidence_whole_and_ignored_by_git(explained):
    explained.run("--gpuperf", "-n", "2", subprocess=True)
    document = json.loads(last_run(explained).read_text())
    assert document["schema"] == 6
    assert {test["test"] for test in document["tests"]} == {"test_hog", "test_copy"}
    assert (explained.path / ".gpuperf/.gitignore").read_text() == "*\n"
    assert [path.name for path in sorted((explained.path / ".gpuperf").iterdir())] == [".gitignore", "last-run.json"]


def test_a_run_that_gathered_nothing_leaves_the_last_one_alone(explained):
    explained.run("--gpuperf")
    before = last_run(explained).read_bytes()
    explained.run("--gpuperf", "-k", "no_such_test")
    explained.run()
    assert last_run(explained).read_bytes() == before


def test_a_folder_that_cannot_be_written_costs_a_word_and_no_more(explained):
    shutil.rmtree(explained.path / ".gpuperf")
    (explained.path / ".gpuperf").write_text("a file in the way")
    result = explained.run("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*last-run.json cannot be written*gpuperf explain will not know of this run*"])


def test_an_expected_regression_has_its_cause_on_record(explained, monkeypatch, capsys):
    spill(explained)
    explained.edit("test_hog.py", "def test_hog", "import pytest\n@pytest.mark.xfail\ndef test_hog")
    assert explained.run("--gpuperf").ret == 0
    status, out, _ = run_command(explained, monkeypatch, capsys, "test_hog.py::test_hog")
    assert status == 0
    assert "cause: register spilling" in out
