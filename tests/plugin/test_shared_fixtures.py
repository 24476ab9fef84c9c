"""Kernels that a fixture compiles once for several tests: each belongs to the test that launches it."""

from __future__ import annotations

import shutil

import pytest
from evidence_tree import read_evidence
from git_samples import commit
from suite_under_test import HOG, Suite

STATIC = ("--gpuperf", "--gpuperf-arch=sm_90")
FIXTURE = """
import pytest

@pytest.fixture(scope="SCOPE")
def kernels(cuda_kernel):
    return cuda_kernel("hog.cu", "hog", options=[])
"""
USERS = """
def test_one(kernels):
    assert kernels.registers > 0

def test_two(kernels, gpu, gpuperf):
    gpuperf(kernels.launch(grid=1, block=32, args=(gpu.random(4096, seed=1), gpu.empty(32))))

class TestThree:
    def test_three(self, kernels):
        assert kernels.name == "hog"
"""
SPILL = ("options=[]", 'options=["-maxrregcount=32"]')
RED = "hog  WORSE  on sm_90 (static)"
PLACES = ["test_users.py::TestThree::test_three", "test_users.py::test_one", "test_users.py::test_two"]


@pytest.fixture
def users(suite: Suite) -> Suite:
    """Three tests that share a kernel of a session's fixture, with baselines for sm_90."""
    return recorded(suite, "session")


def recorded(suite: Suite, scope: str, users: str = USERS, returned: str = "cuda_kernel") -> Suite:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG)
    suite.write("conftest.py", FIXTURE.replace("SCOPE", scope).replace("return cuda_kernel", f"return {returned}"))
    suite.write("test_users.py", users)
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    return suite


def on_record(suite: Suite) -> dict[str, list[str]]:
    """Workloads by module and test."""
    folder = suite.path / "baselines/sm_90"
    trees = {path.relative_to(folder).with_suffix(".py"): read_evidence(path) for path in folder.rglob("*.jsonl")}
    return {
        f"{module}::{test}": sorted(works)
        for module, tree in trees.items()
        for tests in tree["toolchains"].values()
        for test, works in tests.items()
    }


def test_kernel_is_on_record_under_the_tests_that_use_it(users: Suite) -> None:
    """Whatever the scope of its fixture, and the order of the tests."""
    assert sorted(on_record(users)) == PLACES
    again = users.run(*STATIC)
    assert (again.ret, "NEW" in again.stdout.str()) == (0, False)
    before = users.baseline_files()
    reverse = "\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n"
    for scope, more in (("session", reverse), ("class", ""), ("function", "")):
        shutil.rmtree(users.path / "baselines")
        users.write("conftest.py", FIXTURE.replace("SCOPE", scope) + more)
        assert users.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
        assert users.baseline_files() == before


TWO_KERNELS = """
import pytest

@pytest.fixture(scope="module")
def kernels(cuda_kernel):
    return {name: cuda_kernel("two.cu", name, options=[]) for name in ("one", "other")}
"""
LAUNCHES = """
import pytest

@pytest.mark.parametrize("name", ["one", "other"])
def test_launches(kernels, gpu, gpuperf, name):
    gpuperf(kernels[name].launch(1, 32, args=(gpu.empty(32),)))

def test_reads(kernels):
    pass

def test_calls(kernels, gpu, gpuperf):
    launch = kernels["one"].launch(1, 32, args=(gpu.empty(32),))
    gpuperf(lambda: launch(), name="all")
"""


def test_test_that_launches_answers_for_its_launch_alone(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    kernel = 'extern "C" __global__ void {}(float* x) {{ x[threadIdx.x] = {}; }}\n'
    suite.write("two.cu", kernel.format("one", "1.0f") + kernel.format("other", "x[1] / x[0]"))
    suite.write("conftest.py", TWO_KERNELS)
    suite.write("test_users.py", LAUNCHES)
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    assert on_record(suite) == {
        "test_users.py::test_calls": ["one", "other"],
        "test_users.py::test_launches[one]": ["one"],
        "test_users.py::test_launches[other]": ["other"],
        "test_users.py::test_reads": ["one", "other"],
    }


def test_regression_fails_every_user(users: Suite) -> None:
    users.edit("conftest.py", *SPILL)
    for workers in ((), ("-n", "2")):
        result = users.run(*STATIC, *workers)
        assert result.parseoutcomes()["failed"] == 3
        assert RED in result.stdout.str()


def test_paths_are_relative_to_the_file_that_defines_the_fixture(suite: Suite) -> None:
    folder = suite.path / "below"
    folder.mkdir()
    (folder / "conftest.py").write_text(FIXTURE.replace("SCOPE", "session"))
    (folder / "hog.cu").write_text(HOG)
    (folder / "deeper").mkdir()
    (folder / "deeper/test_users.py").write_text("def test_one(kernels):\n    pass\n")
    assert suite.run(*STATIC, "below").ret == 0
    (folder / "hog.cu").unlink()
    result = suite.run(*STATIC, "below")
    result.stdout.fnmatch_lines(["*below/hog.cu: no such file*relative to the file that defines the fixture kernels."])
    result.stdout.fnmatch_lines(["below/conftest.py:6: MissingSource"])
    result.stdout.no_fnmatch_line("*pytest_runtest_setup*")


def test_test_that_stops_before_its_launch_is_judged_by_the_fixtures_kernel(users: Suite) -> None:
    users.edit("test_users.py", "    gpuperf(", "    gpu.random(8, seed=1).sum()\n    gpuperf(")
    result = users.run(*STATIC, "--gpuperf-open=fail", "-rA")
    assert result.ret == 0
    assert "did not reach it" not in result.stdout.str()
    users.edit("conftest.py", *SPILL)
    assert users.run(*STATIC, "-k", "two").parseoutcomes()["failed"] == 1


def test_kernel_of_a_function_that_a_fixture_returns_is_the_tests(suite: Suite) -> None:
    recorded(suite, "session", "def test_one(kernels):\n    kernels()\n", returned="lambda: cuda_kernel")
    assert on_record(suite) == {"test_users.py::test_one": ["hog"]}


def test_revision_has_its_fixtures_kernels_too(users: Suite) -> None:
    shutil.rmtree(users.path / "baselines")
    users.write(".gitignore", "__pycache__\n.gpuperf\nbaselines\n")
    commit(users.path)
    same = users.run(*STATIC, "--gpuperf-against=HEAD", "-k", "one")
    assert (same.ret, "UNCHANGED" in same.stdout.str()) == (0, True)
    users.edit("conftest.py", *SPILL)
    result = users.run(*STATIC, "--gpuperf-against=HEAD", "-k", "one")
    assert RED in result.stdout.str()
