"""What is a full run, and which modules it is about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.session.run_scope import is_narrowed, scope_of

SOURCES = pytest.Config.ArgsSource


def config(
    tmp_path: Any, *args: str, addopts: tuple[str, ...] = (), source: Any = SOURCES.ARGS,
    by_hand: tuple[str, ...] = (), **option: Any,
) -> Any:  # fmt: skip
    given = SimpleNamespace(dir=tmp_path, args=by_hand)
    return SimpleNamespace(
        rootpath=tmp_path, invocation_params=given, args=list(args), args_source=source,
        option=SimpleNamespace(**option), getoption=option.get, getini=lambda name: list(addopts),
    )  # fmt: skip


def test_places_are_files_and_folders_without_single_tests(tmp_path):
    scope = scope_of(config(tmp_path, "suite", "other/test_a.py", "test_b.py::test_x"))
    assert scope.places == ("suite", "other/test_a.py")
    assert [scope.covers(one) for one in ("suite/test_c.py", "suites/test_c.py", "other/test_a.py", "test_b.py")] == [
        True, False, True, False
    ]  # fmt: skip
    assert (scope.full, scope.whole) == (True, False)


def test_the_root_and_testpaths_are_the_whole(tmp_path):
    root = scope_of(config(tmp_path, str(tmp_path), source=SOURCES.INVOCATION_DIR))
    assert (root.whole, root.covers("anything/test_a.py")) == (True, True)
    by_ini = scope_of(config(tmp_path, "tests", source=SOURCES.TESTPATHS))
    assert (by_ini.whole, by_ini.covers("perf/test_a.py")) == (True, False)


def test_paths_in_addopts_are_what_the_project_searches_and_those_of_a_command_are_not(tmp_path):
    usual = ("-q", "tests", "-k", "work")
    assert scope_of(config(tmp_path, "tests", addopts=usual)).whole
    assert scope_of(config(tmp_path, "tests/test_a.py::test_x", addopts=("tests/test_a.py::test_x",))).whole
    assert not scope_of(config(tmp_path, "tests", "perf", addopts=usual)).whole
    assert not scope_of(config(tmp_path, "tests", addopts=usual, by_hand=("--gpuperf", "tests"))).whole


@pytest.mark.parametrize(
    ("option", "addopts", "narrowed"),
    [
        ({}, (), False),
        ({"keyword": "", "markexpr": "", "deselect": None, "lf": False}, (), False),
        ({"keyword": "q"}, ("-q",), True),
        ({"keyword": "work"}, ("-k", "work"), False),
        ({"keyword": "work"}, ("-kwork",), False),
        ({"keyword": "work"}, ("-k=work",), False),
        ({"markexpr": "not slow"}, ("-m", "not slow"), False),
        ({"markexpr": "gpu"}, ("-m", "not slow"), True),
        ({"deselect": ["a.py::x", "a.py::y"]}, ("--deselect=a.py::x",), True),
        ({"ignore": ["a.py"]}, ("--ignore", "a.py"), False),
        ({"lf": True}, (), True),
        ({"lf": True}, ("--last-failed",), False),
    ],
)
def test_a_flag_of_the_command_line_narrows_and_one_of_the_ini_file_does_not(tmp_path, option, addopts, narrowed):
    assert is_narrowed(config(tmp_path, addopts=addopts, **option)) == narrowed
