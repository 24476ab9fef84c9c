"""Kernels that a fixture compiles once for several tests: judged once, as the fixture's own."""

from __future__ import annotations

import shutil

import pytest
from evidence_tree import read_evidence
from git_samples import commit
from suite_under_test import HOG, RECORD, SIMULATED, Suite

from pytest_gpuperf.cli.command_line import main

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
RED = "hog of the fixture kernels  WORSE  on sm_90 (static)"


@pytest.fixture
def users(suite: Suite) -> Suite:
    """Three tests that share a kernel of a session's fixture, with baselines for sm_90."""
    return recorded(suite, "session")


def recorded(suite: Suite, scope: str) -> Suite:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG)
    suite.write("conftest.py", FIXTURE.replace("SCOPE", scope))
    suite.write("test_users.py", USERS)
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


@pytest.mark.parametrize(
    ("scope", "places"),
    [
        ("session", ["conftest.py::fixture kernels"]),
        ("package", ["conftest.py::fixture kernels"]),
        ("module", ["test_users.py::fixture kernels"]),
        ("class", ["test_users.py::TestThree::fixture kernels", "test_users.py::test_one"]),
        ("function", ["test_users.py::TestThree::test_three", "test_users.py::test_one"]),
    ],
)
def test_a_kernel_is_on_record_under_what_it_lives_as_long_as(suite: Suite, scope: str, places: list[str]) -> None:
    shared = recorded(suite, scope)
    assert sorted(on_record(shared)) == sorted([*places, "test_users.py::test_two"])
    again = shared.run(*STATIC)
    assert (again.ret, "NEW" in again.stdout.str()) == (0, False)


def test_a_package_has_its_own(suite: Suite) -> None:
    package = suite.path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_inside.py").write_text("def test_inside(kernels):\n    pass\n")
    (package / "hog.cu").write_text(HOG)
    (package / "conftest.py").write_text(FIXTURE.replace("SCOPE", "package"))
    recorded(suite, "session")
    assert on_record(suite)["package/__init__.py::fixture kernels"] == ["hog"]


def test_a_regression_fails_the_first_user_alone(users: Suite) -> None:
    users.edit("conftest.py", *SPILL)
    result = users.run(*STATIC, "-rA")
    result.stdout.fnmatch_lines(["*FAILED test_users.py::test_one - *"])
    result.stdout.fnmatch_lines(["PASSED test_users.py::TestThree::test_three"])
    assert RED in result.stdout.str()
    assert result.parseoutcomes() == {"failed": 2, "passed": 1}  # test_two launches it, and answers for its launch


@pytest.mark.parametrize("only", ["test_three", "test_one"])
def test_whichever_test_comes_first_answers_for_it(users: Suite, only: str) -> None:
    users.edit("conftest.py", *SPILL)
    result = users.run(*STATIC, "-k", only)
    assert RED in result.stdout.str()
    assert result.parseoutcomes()["failed"] == 1


def test_another_order_of_tests_records_the_same(users: Suite) -> None:
    before = {path: path.read_bytes() for path in users.path.glob("baselines/sm_90/*.jsonl")}
    for path in before:
        path.unlink()
    reverse = "\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n"
    users.write("conftest.py", FIXTURE.replace("SCOPE", "session") + reverse)
    assert users.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    assert {path: path.read_bytes() for path in before} == before


FAILING = [
    ("def test_one", "@pytest.mark.xfail(reason='#1')\ndef test_one"),
    ("def test_one", "@pytest.mark.gpuperf(xfail='#1')\ndef test_one"),
    ("assert kernels.registers > 0", "pytest.xfail('#1')"),
    ("assert kernels.registers > 0", "assert kernels.registers == 0"),
]


@pytest.mark.parametrize(("old", "new"), FAILING, ids=["xfail", "marker", "in-test", "failure"])
def test_a_test_that_fails_by_itself_leaves_it_to_the_next(users: Suite, old: str, new: str) -> None:
    users.edit("conftest.py", *SPILL)
    users.edit("test_users.py", old, new)
    users.write("test_users.py", "import pytest\n" + (users.path / "test_users.py").read_text())
    result = users.run(*STATIC, "-k", "one or three", "-rf")
    result.stdout.fnmatch_lines(["FAILED test_users.py::TestThree::test_three - Failed: hog of the fixture*"])


def test_a_second_attempt_at_the_first_user_is_red_again(users: Suite) -> None:
    users.edit("conftest.py", *SPILL)
    twice = """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol
    if item.name != "test_one":
        return None
    runtestprotocol(item, nextitem=nextitem, log=False)
    item._initrequest()
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
    users.write("conftest.py", (users.path / "conftest.py").read_text() + twice)
    result = users.run(*STATIC, "-k", "one or three", "-rf")
    assert result.parseoutcomes() == {"failed": 1, "passed": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["FAILED test_users.py::test_one - *"])


def test_each_worker_of_xdist_has_a_first_user_and_the_table_one_line(users: Suite) -> None:
    users.write("test_more.py", USERS)
    result = users.run(*STATIC, "-n", "2", "--dist=loadfile", "-k", "one or three", subprocess=True)
    assert result.ret == 0
    assert result.stdout.str().count("conftest.py::fixture kernels") == 1
    users.edit("conftest.py", *SPILL)
    red = users.run(*STATIC, "-n", "2", "--dist=loadfile", "-k", "one or three", subprocess=True)
    assert red.parseoutcomes()["failed"] == 2


PARAMETERS = """
import pytest

class Shape:
    pass

@pytest.fixture(scope="session", params=[32, 64])
def tile(request):
    return request.param

SHAPES = [{}, {"a": 1}, Shape, pytest.param(0.5, id="half")]

@pytest.fixture(scope="session", params=SHAPES, ids=["plain", None, None, None])
def kernels(cuda_kernel, tile, request):
    return cuda_kernel("hog.cu", "hog", options=[f"-DTILE={tile}"])
"""


def test_parameters_are_part_of_the_name_with_those_of_fixtures_behind(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG)
    suite.write("conftest.py", PARAMETERS)
    suite.write("test_users.py", "def test_one(kernels):\n    pass\n")
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    labels = [f"{kernel}-{tile}" for kernel in ("plain", "kernels1", "Shape", "half") for tile in (32, 64)]
    assert sorted(on_record(suite)) == sorted(f"conftest.py::fixture kernels[{label}]" for label in labels)
    again = suite.run(*STATIC)
    assert (again.ret, again.parseoutcomes()) == (0, {"passed": 8})


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


def test_a_sessions_fixture_from_elsewhere_has_no_place_for_baselines(
    suite: Suite, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "elsewhere_kernels.py").write_text(FIXTURE.replace("SCOPE", "session"))
    suite.pytester.syspathinsert(elsewhere)
    suite.write("test_users.py", USERS)
    result = suite.run("-p", "elsewhere_kernels", "test_users.py")
    assert result.parseoutcomes() == {"errors": 3}
    words = "*the session-scoped fixture kernels is defined in *elsewhere_kernels.py, outside of pytest's root*"
    result.stdout.fnmatch_lines([words])


def test_a_fixture_that_is_no_function_has_no_folder_for_paths(suite: Suite) -> None:
    compiles = "class Compiles:\n    def __call__(self, cuda_kernel):\n        return cuda_kernel('hog.cu', 'hog')\n"
    made = "kernels = pytest.fixture(scope='module', name='kernels')(Compiles())\n"
    suite.write("conftest.py", f"import pytest\n\n{compiles}    __name__ = 'kernels'\n\n{made}")
    suite.write("test_users.py", USERS)
    result = suite.run("test_users.py")
    result.stdout.fnmatch_lines(["*the module-scoped fixture kernels is defined by no Python function, so that paths*"])


def test_a_fixture_that_no_test_uses_any_more_is_missed_in_a_full_run_and_removed(users: Suite) -> None:
    for part in ("test_one", "test_two", "not test_two"):
        assert users.run(*STATIC, "-k", part).ret == 0
    users.write("test_users.py", USERS.replace("kernels", "own").replace("def test_", "def not_").replace("Three", ""))
    users.write("test_other.py", "def test_other(cuda_kernel):\n    cuda_kernel('other.cu', 'other')\n")
    result = users.run(*STATIC, "--gpuperf-open=fail", "test_other.py", ".")
    result.stdout.fnmatch_lines(
        ["*its test is gone: conftest.py::fixture kernels (no test asks for it)*To do: restore*"]
    )
    users.run("--update-baselines=all", "--gpuperf-arch=sm_90")
    assert "conftest.py::fixture kernels" not in on_record(users)


def test_a_kernel_that_the_fixture_lost_is_not_measured(users: Suite) -> None:
    users.edit("conftest.py", '"hog.cu", "hog", options=[]', '"other.cu", "other"')
    result = users.run(*STATIC, "--gpuperf-open=fail", "-k", "test_one")
    text = result.stdout.str()
    assert result.ret == 1
    assert "hog of the fixture kernels  NOT-MEASURED  on sm_90 (static)" in text


def test_a_test_that_stops_before_its_launch_is_stood_for_by_the_fixture(users: Suite) -> None:
    users.edit("test_users.py", "    gpuperf(", "    gpu.random(8, seed=1).sum()\n    gpuperf(")
    result = users.run(*STATIC, "--gpuperf-open=fail", "-rA")
    assert result.ret == 0
    assert "was not reached" not in result.stdout.str()


def test_a_fixture_that_needs_a_gpu_stops_its_tests_early(users: Suite) -> None:
    text = (users.path / "conftest.py").read_text().replace("return cuda", "kernel = cuda")
    users.write("conftest.py", f"{text}    kernel.launch(1, 32, (None, None))()\n    return kernel\n")
    result = users.run(*STATIC)
    result.stdout.fnmatch_lines(["*3 static only*"])
    assert "conftest.py::fixture kernels" in result.stdout.str()


def test_a_test_fills_no_constant_of_a_shared_kernel(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    text = '__constant__ float weight; extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= weight; }\n'
    suite.write("scale.cu", text)
    fill = '    kernel.set_constant("weight", numpy.float32(2))\n'
    fixture = FIXTURE.replace("SCOPE", "module").replace(
        'return cuda_kernel("hog.cu", "hog"', 'kernel = cuda_kernel("scale.cu", "scale"'
    )
    suite.write("conftest.py", f"import numpy\n{fixture}{fill}    return kernel\n")
    suite.write("test_users.py", f"import numpy\n\ndef test_one(kernels):\n    kernel = kernels\n{fill}")
    result = suite.run("test_users.py")
    result.stdout.fnmatch_lines(
        ["*scale: set_constant('weight') in a test, and the fixture kernels shares the kernel*"]
    )


MEASURED = """
def test_two(kernels, gpu, gpuperf):
    gpuperf(kernels.launch(grid=1, block=32, args=(gpu.random(4096, seed=1), gpu.empty(32))))

def test_zero(kernels):
    pass
"""


@pytest.mark.parametrize("measured", [True, False])
def test_a_time_that_a_test_measures_outranks_worse_code_of_the_fixture(gpu_suite: Suite, measured: bool) -> None:
    (gpu_suite.path / "test_suite.py").unlink()
    gpu_suite.write("hog.cu", HOG)
    gpu_suite.write("conftest.py", SIMULATED + FIXTURE.replace("SCOPE", "session"))
    gpu_suite.write("test_users.py", MEASURED if measured else MEASURED.replace("gpuperf(kernels", "(kernels"))
    assert gpu_suite.run(*RECORD).ret == 0
    gpu_suite.edit("conftest.py", *SPILL)
    result = gpu_suite.run("--gpuperf", "-k", "test_zero")
    assert result.parseoutcomes() == {"passed" if measured else "failed": 1, "deselected": 1}


def test_a_revision_has_its_fixtures_kernels_too(users: Suite) -> None:
    shutil.rmtree(users.path / "baselines")
    users.write(".gitignore", "__pycache__\n.gpuperf\nbaselines\n")
    commit(users.path)
    same = users.run(*STATIC, "--gpuperf-against=HEAD", "-k", "one", subprocess=True)
    assert (same.ret, "UNCHANGED" in same.stdout.str()) == (0, True)
    users.edit("conftest.py", *SPILL)
    result = users.run(*STATIC, "--gpuperf-against=HEAD", "-k", "one", subprocess=True)
    assert RED in result.stdout.str()


def test_the_kernel_of_a_function_that_a_fixture_returns_is_the_tests(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG)
    suite.write("conftest.py", FIXTURE.replace("SCOPE", "session").replace("return cuda", "return lambda: cuda"))
    suite.write("test_users.py", "def test_one(kernels):\n    kernels()\n")
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    assert on_record(suite) == {"test_users.py::test_one": ["hog"]}


ALIKE = """
import pytest

@pytest.fixture(scope="session", params=[1, "1"])
def kernels(cuda_kernel, request):
    return cuda_kernel("hog.cu", "hog", options=[f"-DHALF={0.5 if request.param == 1 else 0.25}f"])
"""


def test_two_kernels_are_not_put_on_record_under_one_name(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG.replace("0.5f", "HALF"))
    suite.write("conftest.py", ALIKE)
    suite.write("test_users.py", "def test_one(kernels):\n    pass\n")
    result = suite.run(*STATIC)
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(["*the fixture kernels compiled another hog than when it was set up before, and both*"])
    suite.write("conftest.py", ALIKE.replace('"1"]', '"1"], ids=["half", "quarter"]'))
    assert suite.run(*STATIC).parseoutcomes()["passed"] == 2


def test_a_wider_scope_is_a_renaming_and_what_it_leaves_is_removed(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.write("test_more.py", USERS)
    users = recorded(suite, "module")
    users.edit("conftest.py", '"module"', '"session"')
    result = users.run(*STATIC, "--gpuperf-open=fail", "-k", "not two")
    places = "'test_more.py::fixture kernels' 'conftest.py::fixture kernels'"
    result.stdout.fnmatch_lines(
        [f"*was test_more.py::fixture kernels*, the same machine code: run `gpuperf baselines mv {places}` to*"]
    )
    monkeypatch.chdir(users.path)
    assert main(["baselines", "mv", "test_more.py::fixture kernels", "conftest.py::fixture kernels"]) == 0
    users.run("--update-baselines=all", "--gpuperf-arch=sm_90")
    assert users.run(*STATIC, "--gpuperf-open=fail").ret == 0
    assert sorted(on_record(users)) == [
        "conftest.py::fixture kernels",
        "test_more.py::test_two",
        "test_users.py::test_two",
    ]


def test_a_parameter_that_is_gone_is_removed(suite: Suite) -> None:
    (suite.path / "test_suite.py").unlink()
    suite.write("hog.cu", HOG)
    suite.write("conftest.py", PARAMETERS)
    suite.write("test_users.py", "def test_one(kernels):\n    pass\n")
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    suite.edit("conftest.py", "params=[32, 64]", "params=[32]")
    before = set(on_record(suite))
    suite.run("--update-baselines=all", "--gpuperf-arch=sm_90")
    gone = {one.rpartition("::")[2] for one in before - set(on_record(suite))}
    assert gone == {f"fixture kernels[{one}-64]" for one in ("Shape", "half", "kernels1", "plain")}
