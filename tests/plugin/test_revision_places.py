"""Which tests a comparison with a revision runs there, however the command names them: never fewer than it judges."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import HOG, Suite

AGAINST = ("--gpuperf", "--gpuperf-arch=sm_90", "--gpuperf-against=HEAD")
SPILL = "['-maxrregcount=32']"


def hog_test(options: str = "[]", name: str = "hog") -> str:
    return (
        f"def test_{name}(cuda_kernel, gpu, gpuperf):\n"
        f"    kernel = cuda_kernel('hog.cu', 'hog', options={options})\n"
        "    a = gpu.random(4096, seed=1)\n"
        "    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a))))\n"
    )


@pytest.fixture
def project(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """An empty repository."""
    monkeypatch.setenv("CI", "true")
    for path in suite.path.iterdir():
        if path.is_file():
            path.unlink()
    write(suite, ".gitignore", "__pycache__\n.gpuperf\n.pytest_cache\n")
    return suite


def write(project: Suite, name: str, text: str) -> None:
    (project.path / name).parent.mkdir(parents=True, exist_ok=True)
    project.write(name, text)


def with_hog(project: Suite, folder: str = ".", options: str = "[]") -> Path:
    write(project, f"{folder}/hog.cu", HOG)
    write(project, f"{folder}/test_hog.py", hog_test(options))
    return project.path / folder / "test_hog.py"


def status(project: Suite, *arguments: str) -> tuple[int, str]:
    result = project.run(*AGAINST, *arguments, subprocess=True)
    return int(result.ret), result.stdout.str() + result.stderr.str()


def assert_worse(project: Suite, *arguments: str) -> None:
    ended, said = status(project, *arguments)
    assert ended == 1, said
    assert "WORSE" in said


def assert_not_comparable(project: Suite, *arguments: str) -> str:
    ended, said = status(project, *arguments)
    assert ended == 1, said
    assert "NOT-COMPARABLE" in said
    return said


def root_beside(project: Suite) -> tuple[Path, tuple[str, ...]]:
    write(project, "conf/pytest.ini", "[pytest]\n")
    return with_hog(project, "tests"), ("-c", "conf/pytest.ini", "tests")


def two_packages(project: Suite) -> tuple[Path, tuple[str, ...]]:
    for name in ("a", "b"):
        write(project, f"{name}/pytest.ini", "[pytest]\n")
        write(project, f"{name}/tests/test_other_{name}.py", "def test_nothing():\n    pass\n")
    return with_hog(project, "b/tests"), ("a", "b")


def a_link(project: Suite) -> tuple[Path, tuple[str, ...]]:
    test = with_hog(project, "tests")
    (project.path / "t").symlink_to("tests")
    return test, ("t",)


def a_name_in_a_link(project: Suite) -> tuple[Path, tuple[str, ...]]:
    return a_link(project)[0], ("t/test_hog.py::test_hog",)


def a_file_and_its_test(project: Suite) -> tuple[Path, tuple[str, ...]]:
    return with_hog(project), ("test_hog.py", "test_hog.py::test_hog")


@pytest.mark.parametrize("made", [root_beside, two_packages, a_link, a_name_in_a_link, a_file_and_its_test])
def test_a_loss_is_red_however_its_test_is_named(
    project: Suite, made: Callable[[Suite], tuple[Path, tuple[str, ...]]]
) -> None:
    test, arguments = made(project)
    commit(project.path)
    assert status(project, *arguments)[0] == 0
    test.write_text(hog_test(SPILL))
    assert_worse(project, *arguments)


@pytest.mark.parametrize("place", ["gpu", "gpu/test_hog.py", "gpu/test_hog.py::test_hog"])
def test_a_place_that_was_renamed_is_compared_with_what_it_was(project: Suite, place: str) -> None:
    with_hog(project, "kernels")
    commit(project.path)
    git(project.path, "mv", "kernels", "gpu")
    assert status(project, place)[0] == 0
    (project.path / "gpu/test_hog.py").write_text(hog_test(SPILL))
    assert_not_comparable(project)
    ended, said = status(project, place)  # a part of the tests does not know what is gone
    assert (ended, "1 new workload without a counterpart in HEAD" in said) == (0, True)


def test_an_import_from_another_worktree_compares_nothing(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    test = with_hog(project, "tests")
    write(project, "src/kpkg/__init__.py", "OPTIONS = []\n")
    test.write_text("import kpkg\n" + hog_test("kpkg.OPTIONS"))
    commit(project.path)
    other = project.path.with_name(f"{project.path.name}-other")
    git(project.path, "worktree", "add", "-q", "--detach", str(other))
    write(project, "src/kpkg/__init__.py", f"OPTIONS = {SPILL}\n")
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{other / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for arguments in ((), ("-n", "2")):
        said = assert_not_comparable(project, *arguments)
        assert "this run used a file that is not its own: " in said
        assert "of another working tree, was imported and differs from src/kpkg/__init__.py of this side" in said


def expected_to_fail(project: Suite) -> None:
    text = hog_test().replace("    kernel =", "    assert False\n    kernel =")
    write(project, "test_hog.py", f"import pytest\n@pytest.mark.xfail(reason='bug 7')\n{text}")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_path_in_addopts_is_of_its_own_revision(project: Suite, workers: tuple[str, ...]) -> None:
    """What a change leaves out by one is named, as where testpaths leaves it out."""
    with_hog(project)
    write(project, "test_other.py", hog_test(name="other"))
    commit(project.path)
    with_hog(project, options=SPILL)
    write(project, "pytest.ini", "[pytest]\naddopts = test_other.py\n")
    ended, said = status(project, *workers)
    assert ended == 0, said
    assert "partial run: it left out 1 of 2 tests that " in said
    assert status(project, *workers, "test_hog.py")[0] == 1


def folder_that_fails(project: Suite) -> None:
    write(project, "conftest.py", "")
    (project.path / "sub").mkdir()
    (project.path / "test_hog.py").rename(project.path / "sub/test_hog.py")
    (project.path / "hog.cu").rename(project.path / "sub/hog.cu")
    write(project, "sub/conftest.py", "raise RuntimeError('broken')\n")
    write(project, "test_other.py", "def test_nothing():\n    pass\n")


def deselected(project: Suite) -> None:
    write(project, "pytest.ini", "[pytest]\naddopts = -m 'not slow'\nmarkers = slow\n")
    write(project, "test_hog.py", f"import pytest\n@pytest.mark.slow\n{hog_test()}")


def left_out(project: Suite) -> None:
    write(project, "conftest.py", "collect_ignore = ['test_hog.py']\n")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (expected_to_fail, "expected to fail there, and did: bug 7"),
        (folder_that_fails, "could not be collected there"),
        (deselected, "left out there, by settings or hooks"),
        (left_out, "its own settings or conftests leave it out"),
    ],
)
def test_what_could_not_run_there_is_not_new(project: Suite, before: Callable[[Suite], None], said: str) -> None:
    test = with_hog(project)
    before(project)
    commit(project.path)
    place = project.path / "sub/test_hog.py" if (project.path / "sub").exists() else test
    for name in ("conftest.py", "sub/conftest.py", "pytest.ini"):
        (project.path / name).unlink(missing_ok=True)
    place.write_text(hog_test(SPILL))
    told = assert_not_comparable(project)
    assert said in " ".join(told.split())


def test_a_new_kernel_of_a_test_that_ends_static_only_is_new(project: Suite) -> None:
    test = with_hog(project)
    commit(project.path)
    test.write_text(
        hog_test() + "    second = cuda_kernel('hog.cu', 'hog', options=['-DNEW'])\n"
        "    gpuperf(second.launch(grid=1, block=32, args=(a, gpu.empty_like(a))), name='second')\n"
    )
    ended, said = status(project)
    assert ended == 0, said
    assert "1 NEW" in said


PARAMETRISED = """
import pytest
@pytest.mark.parametrize("n", [1024, 2048]{ids})
def test_hog(cuda_kernel, gpu, gpuperf, n):
    kernel = cuda_kernel("hog.cu", "hog", options={options})
    a = gpu.random(n * 4, seed=1)
    gpuperf(kernel.launch(grid=n // 1024, block=32, args=(a, gpu.empty_like(a))))
"""


def test_new_names_of_parameters_hide_no_loss(project: Suite) -> None:
    test = with_hog(project)
    test.write_text(PARAMETRISED.format(ids="", options="[]"))
    commit(project.path)
    ids = ", ids=lambda n: f'n{n}'"
    test.write_text(PARAMETRISED.format(ids=ids, options="[]"))
    assert status(project)[0] == 0
    test.write_text(PARAMETRISED.format(ids=ids, options=SPILL))
    said = assert_not_comparable(project)
    gone = "test_hog.py::test_hog[1024] [hog], test_hog.py::test_hog[2048] [hog], which is gone"
    assert f"it has the kernel of {gone}" in said


def test_a_cache_folder_in_the_project_has_no_tests(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(project.path / "cache"))
    write(project, ".gitignore", "__pycache__\n.gpuperf\n.pytest_cache\ncache\n")
    test = with_hog(project)
    commit(project.path)
    test.write_text(hog_test(SPILL))
    assert_worse(project)
    assert_worse(project)


@pytest.fixture
def with_submodule(project: Suite, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``project`` with a submodule of one test, whose next commit is slower: the submodule's folder."""
    for name, value in {"COUNT": "1", "KEY_0": "protocol.file.allow", "VALUE_0": "always"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    source = project.path.with_name(f"{project.path.name}-source")
    source.mkdir()
    (source / "hog.cu").write_text(HOG)
    (source / "test_hog.py").write_text(hog_test())
    commit(source)
    git(project.path, "init", "-q", "-b", "main")
    git(project.path, "submodule", "add", "-q", str(source), "kernels")
    commit(project.path)
    monkeypatch.delenv("GIT_CONFIG_COUNT")  # what follows needs no more of git than a user has
    kernels = project.path / "kernels"
    (kernels / "test_hog.py").write_text(hog_test(SPILL))
    commit(kernels)
    return kernels


def test_a_submodule_is_compared_with_its_commit_of_then(project: Suite, with_submodule: Path) -> None:
    assert_worse(project)
    assert_worse(project)
    git(with_submodule, "checkout", "-q", "HEAD^")
    assert status(project)[0] == 0


def test_a_submodule_without_its_commit_of_then_is_an_error(project: Suite, with_submodule: Path) -> None:
    git(with_submodule, "checkout", "-q", "--orphan", "island")
    commit(with_submodule)
    git(with_submodule, "branch", "-q", "-D", "main")
    git(with_submodule, "remote", "remove", "origin")
    git(with_submodule, "reflog", "expire", "--expire=now", "--all")
    git(with_submodule, "gc", "-q", "--prune=now")
    ended, said = status(project)
    assert ended == 4
    assert "the submodule kernels cannot be checked out at its commit of then (" in said
    assert f"To do: fetch that commit, git -C {with_submodule} fetch --all" in said


def test_a_renamed_kernel_of_a_test_is_the_same_and_one_that_is_left_out_is_missed(project: Suite) -> None:
    test = with_hog(project)
    commit(project.path)
    write(project, "hog.cu", HOG.replace("void hog(", "void hig("))
    test.write_text(hog_test().replace("'hog', options", "'hig', options"))
    ended, said = status(project)
    assert ended == 0, said
    assert "1 workload: 1 UNCHANGED" in said
    test.write_text("def test_hog(cuda_kernel):\n    cuda_kernel(" + repr(OTHER) + ", 'other')\n")
    ended, said = status(project)
    assert ended == 1, said
    assert "NOT-MEASURED on sm_90: its test did not reach it: test_hog.py::test_hog [hog]" in said
    assert "gpuperf prune" not in said


OTHER = """extern "C" __global__ void other(float* a)
{ a[threadIdx.x] *= 2; }
"""
