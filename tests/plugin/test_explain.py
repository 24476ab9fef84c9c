"""Causes under a red verdict, and ``gpuperf explain``; and the estimates that they rest on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from suite_under_test import HOG, Suite, hog_test, with_baselines

from pytest_gpuperf.compile.warp_model import estimate as estimate_module

COPY = """
extern "C" __global__ void copy(const float* a, float* b)
{
    b[threadIdx.y * 32 + threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
}
"""
TEST_OF_COPY = """
def test_copy(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("copy.cu", "copy")
    a, b = gpu.random(1024, seed=1), gpu.empty(1024)
    gpuperf(kernel.launch(grid=1, block=(32, 32), args=(a, b)), name="rows")
"""
ARCHS = "--gpuperf-arch=sm_80,sm_90,sm_120"


LAST_RUN = ".gpuperf/last-run.json"


@pytest.fixture
def explained(suite: Suite, shared_folder: Path) -> Suite:
    """Two kernels with baselines of three architectures, without a GPU."""
    files = {"hog.cu": HOG, "copy.cu": COPY, "test_hog.py": hog_test() + TEST_OF_COPY}
    return with_baselines(
        suite, shared_folder / "explained", files, "--update-baselines", ARCHS, CUDA_VISIBLE_DEVICES=""
    )


def spill(suite: Suite) -> None:
    suite.edit("test_hog.py", "options=[]", 'options=["-maxrregcount=32"]')


def scatter(suite: Suite) -> None:
    suite.edit("copy.cu", "b[threadIdx.y * 32 + threadIdx.x]", "b[threadIdx.x * 32 + threadIdx.y]")


def message(result: pytest.RunResult) -> list[str]:
    """Lines of the failure."""
    lines = result.stdout.lines
    first = next(n for n, line in enumerate(lines) if "WORSE" in line)
    last = next(n for n, line in enumerate(lines) if "If this change is intended" in line)
    return lines[first : last + 1]


def test_red_workload_says_its_cause_and_remedy_on_one_screen_and_afterwards(explained, command):
    """By a worker of pytest-xdist, too."""
    spill(explained)
    result = explained.run("--gpuperf", "-n", "2")
    assert result.ret == 1
    lines = message(result)
    assert len(lines) <= 24
    assert all(len(line) <= 100 for line in lines)
    text = "\n".join(lines)
    for words in ("hog  WORSE  on sm_80", "spill stores 0 -> ", "cause: register spilling (sm_",
                  "-> raise or drop -maxrregcount", "example: occupancy_registers"):  # fmt: skip
        assert words in text
    document = json.loads((explained.path / LAST_RUN).read_text())
    assert {test["test"] for test in document["tests"]} == {"test_hog", "test_copy"}
    assert (explained.path / ".gpuperf/.gitignore").read_text() == "*\n"
    assert [path.name for path in sorted((explained.path / ".gpuperf").iterdir())] == [".gitignore", "last-run.json"]

    status, out, err = command("explain", "test_hog.py::test_hog")
    assert (status, err) == (0, "")
    assert "cause: register spilling" in out
    assert "(an array or spilled" not in out, "a cause replaces the notes of changes, which know one language alone"
    assert "test_copy" not in out
    status, out, _ = command("explain", "test_hog.py::test_copy [rows]")
    assert (status, "[rows]" in out) == (0, True)
    (explained.path / "deeper").mkdir()
    assert "test_hog.py::test_copy [rows]" in command("explain", "test_hog.py", folder="deeper")[1]
    for unknown, close in (
        ("test_hog.py::test_copy [columns]", "close to it: test_hog.py::test_copy [rows]"),
        ("test_hog.py::test_hogs", "test_hog.py::test_hogs is not in the last run; close to it: test_hog.py::test_hog"),
    ):
        status, _, err = command("explain", unknown)
        assert (status, close in err) == (1, True)


def test_changed_kernel_that_does_not_fail_is_explained_on_request(explained, command):
    scatter(explained)
    plain = explained.run("--gpuperf", "--gpuperf-advisory")
    assert plain.ret == 0
    plain.stdout.fnmatch_lines(["*::test_copy: rows  WORSE *", "    cause: uncoalesced access (sm_80)*"])
    status, out, _ = command("explain", "test_hog.py::test_copy")
    assert status == 0
    for words in ("test_hog.py::test_copy [rows]", "figures: ", " registers",
                  "baseline: the machine code differs", "cause: uncoalesced access (sm_80)",
                  "sectors per global request 4 -> 18,"):  # fmt: skip
        assert words in out


def test_missing_machine_code_of_a_changed_kernel_is_named_and_the_remedy_works(explained):
    """Without it no estimate would find what makes the kernel WORSE."""
    scatter(explained)
    shutil.rmtree(explained.path / "baselines/cubins")
    result = explained.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the baseline's machine code is missing. Restore it *--update-baselines=all."])
    assert explained.run("--update-baselines=all").ret == 0
    assert explained.run("--gpuperf").ret == 0


def test_unchanged_kernels_have_no_cause_and_are_estimated_on_request_alone(explained, walked, command):
    """Whatever else their file has by now."""
    explained.write("copy.cu", COPY + "__global__ void neighbour(float* a) { *a = 1; }\n")
    assert explained.run("--gpuperf").ret == 0
    assert walked == []
    status, out, _ = command("explain")
    assert status == 0
    assert out.count("cause:") == out.count("cause: none found") == 2
    assert walked
    assert "4 sectors per" in out
    before = (explained.path / LAST_RUN).read_bytes()
    explained.run("--gpuperf", "-k", "no_such_test")
    explained.run()
    assert (explained.path / LAST_RUN).read_bytes() == before, "a run that gathered nothing leaves it alone"


def test_expected_regression_has_its_cause_on_record(explained, command):
    spill(explained)
    explained.edit("test_hog.py", "def test_hog", "import pytest\n@pytest.mark.xfail\ndef test_hog")
    assert explained.run("--gpuperf").ret == 0
    status, out, _ = command("explain", "test_hog.py::test_hog")
    assert status == 0
    assert "cause: register spilling" in out


def test_test_is_found_by_its_path_as_seen_from_below(suite, command):
    below = suite.path / "deep"
    below.mkdir()
    for name in ("test_suite.py", "work.cu", "other.cu"):
        (suite.path / name).rename(below / name)
    suite.run("--update-baselines")
    suite.run("--gpuperf")
    for named in ("test_suite.py", "./test_suite.py", str(below / "test_suite.py"), "deep/test_suite.py", "deep/"):
        status, out, err = command("explain", named, folder="deep")
        assert status == 0, err
        assert "deep/test_suite.py::test_" in out


def test_baseline_that_cannot_be_compared_with_is_not_called_missing(suite, command):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    suite.blame_another_compiler()
    suite.edit("other.cu", "2.0f", "3.0f + n")
    suite.run("--gpuperf", "-k", "other").stdout.fnmatch_lines(["*doubling  NOT-COMPARABLE  on sm_90*"])
    status, said, _ = command("explain", "test_suite.py::test_other")
    assert status == 0
    assert "instructions" in said


@pytest.mark.parametrize(
    ("content", "remedy"),
    [(None, "run pytest --gpuperf first"), ("{", "run pytest --gpuperf again"),
     ('{"schema": 99}', "run pytest --gpuperf again")],
)  # fmt: skip
def test_last_run_that_cannot_be_read_is_refused_with_the_remedy(suite, command, content, remedy):
    if content is not None:
        (suite.path / ".gpuperf").mkdir()
        (suite.path / LAST_RUN).write_text(content)
    status, _, err = command("explain", "test_suite.py")
    assert (status, remedy in err) == (1, True)
    assert content is None or "last-run.json" in err


def test_folder_that_cannot_be_written_costs_a_word_and_no_more(explained):
    (explained.path / ".gpuperf").write_text("a file in the way")
    result = explained.run("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*last-run.json cannot be written*gpuperf explain will not know of this run*"])


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Architectures of the kernels that were walked through, nothing being kept from earlier runs."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "cache"))
    archs = []
    walk = estimate_module.dry_run

    def watched(program, *more):
        archs.append(program.arch)
        return walk(program, *more)

    monkeypatch.setattr(estimate_module, "dry_run", watched)
    return archs
