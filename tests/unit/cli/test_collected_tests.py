"""Which tests there are: pytest is asked in a child process, under the user's own configuration."""

from __future__ import annotations

import pytest

from pytest_gpuperf.cli.collected_tests import CollectedTests, CollectionError, collect


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with two folders of tests, the working directory."""
    pytester.makeini("[pytest]\n")
    for path, text in {
        "suite/test_a.py": "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_x(n): assert False\n",
        "suite/test_b.py": "class TestY:\n    def test_y(self): assert False\n",
        "other/test_c.py": "def test_z(): assert False\n",
    }.items():
        file = pytester.path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(pytester.path)
    return pytester


def test_every_test_is_named_and_none_is_run(project):
    found = collect([])
    assert found.tests == {
        "suite/test_a.py::test_x[1]",
        "suite/test_a.py::test_x[2]",
        "suite/test_b.py::TestY::test_y",
        "other/test_c.py::test_z",
    }
    assert found.modules == {"suite/test_a.py", "suite/test_b.py", "other/test_c.py"}
    assert (found.root, found.scope) == (project.path, (".",))
    assert (found.deselected, found.failed, found.skipped, found.named_tests) == ((), (), (), ())


def test_paths_bound_the_scope(project):
    found = collect(["suite"])
    assert found.modules == {"suite/test_a.py", "suite/test_b.py"}
    assert found.scope == ("suite",)
    assert found.covers("suite/test_gone.py")
    assert not found.covers("other/test_c.py")


def test_testpaths_bound_the_scope_too(project):
    project.makeini("[pytest]\ntestpaths = other\n")
    assert collect([]).scope == ("other",)


def test_the_baselines_are_those_of_the_configuration_unless_named(project):
    assert collect([]).baselines == project.path / "baselines"
    project.makeini("[pytest]\ngpuperf_baselines = perf\n")
    assert collect([]).baselines == project.path / "perf"
    assert collect([], baselines="else").baselines == project.path / "else"


def test_a_deselected_test_is_noted(project):
    project.makeini("[pytest]\naddopts = -k 'not test_y'\n")
    assert collect([]).deselected == ("suite/test_b.py::TestY::test_y",)


def test_a_test_that_a_conftest_leaves_out_without_a_word_is_there(project):
    """As on a machine without a GPU, where its baseline is as good as elsewhere."""
    left_out = (
        "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'test_y' not in one.name]\n"
    )
    (project.path / "conftest.py").write_text(left_out, encoding="utf-8")
    assert "suite/test_b.py::TestY::test_y" in collect([]).tests


def test_an_empty_parameter_set_is_noted(project):
    """As of a list of GPUs on a machine without one."""
    text = (project.path / "suite/test_a.py").read_text(encoding="utf-8")
    (project.path / "suite/test_a.py").write_text(text.replace("[1, 2]", "[]"), encoding="utf-8")
    assert collect([]).empty == {"suite/test_a.py::test_x"}
    assert collect(["other"]).empty == set()


def test_a_single_test_is_noted(project):
    assert collect(["suite/test_b.py::TestY::test_y"]).named_tests == ("suite/test_b.py::TestY::test_y",)


def test_an_error_and_a_skip_of_a_module_are_noted(project):
    (project.path / "suite/test_a.py").write_text("import no_such_module\n", encoding="utf-8")
    (project.path / "suite/test_b.py").write_text("import pytest\npytest.importorskip('no_such')\n", encoding="utf-8")
    found = collect([])
    assert found.failed == ("suite/test_a.py",)
    assert found.skipped == ("suite/test_b.py",)


def test_xdist_in_addopts_does_not_matter(project):
    pytest.importorskip("xdist")
    project.makeini("[pytest]\naddopts = -n 2\n")
    assert len(collect([]).tests) == 4


def test_the_gate_in_the_configuration_does_not_matter(project):
    project.makeini("[pytest]\ngpuperf = true\n")
    assert len(collect([]).tests) == 4


def test_pytest_that_does_not_start_is_quoted(project):
    project.makeini("[pytest]\naddopts = --no-such-flag\n")
    with pytest.raises(CollectionError, match="--no-such-flag"):
        collect([])


def test_a_path_that_is_not_there_is_quoted(project):
    with pytest.raises(CollectionError, match="no_such_folder"):
        collect(["no_such_folder"])


def test_scope_matches_whole_names_only(tmp_path):
    found = CollectedTests(
        root=tmp_path, baselines=tmp_path, scope=("suite",), named_tests=(), tests=frozenset(), modules=frozenset(),
        deselected=(), failed=(), skipped=(),
    )  # fmt: skip
    assert not found.covers("suite_two/test_a.py")


def test_modules_of_the_current_folder_are_found_and_stand_before_none_of_the_library(project, monkeypatch):
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a warm process has imported the library's before
    (project.path / "copy.py").write_text("raise SystemExit('not the library')")
    (project.path / "kernels.py").write_text("WIDTH = 2\n")
    (project.path / "other/test_c.py").write_text("import kernels\ndef test_z(): pass\n")
    assert "other/test_c.py::test_z" in collect(["other"]).tests
