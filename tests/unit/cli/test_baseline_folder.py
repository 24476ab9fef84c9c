"""Which folder of baselines a command works on: that of the checkout and the project that it is started in.

Never a revision's evidence.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.compile.cache import default_folder
from pytest_gpuperf.process import last_run
from pytest_gpuperf.process.last_run import LastRun


def run_in(root: Path, baselines: Path) -> None:
    """Leave a last run in ``root`` with baselines in this folder."""
    seen = baselines.relative_to(root) if baselines.is_relative_to(root) else baselines
    last_run.keep(root, LastRun(schema=last_run.SCHEMA, date="", plugin="0", baselines=str(seen), tests=()))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose last run had baselines of an unusual name."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "perf" / "records").mkdir(parents=True)
    run_in(root, root / "perf" / "records")
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / ".git").mkdir()
    return root


def test_the_folder_of_the_last_run_is_found_from_below_and_in_its_root(checkout: Path) -> None:
    deep = checkout / "tests" / "deep"
    deep.mkdir(parents=True)
    (deep / "pyproject.toml").write_text("[tool.ruff]\n")
    for start in (checkout, deep, checkout / "perf" / "records"):
        assert folder_of(None, start) == checkout / "perf" / "records"
    assert folder_of(deep, checkout) == deep


def test_a_checkout_below_has_baselines_of_its_own_or_none(checkout: Path) -> None:
    below, start = checkout / "wt", checkout / "wt" / "tests"
    start.mkdir(parents=True)
    (below / ".git").write_text("gitdir: ../.git/worktrees/wt")
    with pytest.raises(NoFolderError, match="name it with --baselines DIR"):
        folder_of(None, start)
    (below / "baselines").mkdir()
    assert folder_of(None, start) == below / "baselines"


def test_a_nearer_folder_of_baselines_goes_before_the_last_run_of_a_folder_above(checkout: Path) -> None:
    (checkout / "lib" / "baselines").mkdir(parents=True)
    assert folder_of(None, checkout / "lib") == checkout / "lib" / "baselines"


def test_a_copy_of_a_checkout_works_on_its_own_baselines(checkout: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy)
    assert folder_of(None, copy) == copy / "perf" / "records"


def test_baselines_outside_of_the_root_are_where_they_were(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    run_in(checkout, tmp_path / "elsewhere")
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy)
    assert folder_of(None, checkout) == folder_of(None, copy) == tmp_path / "elsewhere"


def test_the_one_given_comes_first_and_has_to_be_there(checkout: Path) -> None:
    (checkout / "sub").mkdir()
    assert folder_of(checkout / "sub", checkout) == checkout / "sub"
    with pytest.raises(NoFolderError, match=r"there is no folder .*gone: name that of the baselines"):
        folder_of(checkout / "gone", checkout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With a folder of the usual name, and one that the last run used."""
    for name in ("baselines", "recorded", "sub"):
        (tmp_path / name).mkdir()
    run_in(tmp_path, tmp_path / "recorded")
    return tmp_path


def test_the_evidence_of_a_revision_is_no_baseline(project: Path) -> None:
    run_in(project, default_folder() / "worktrees" / "3f9a-0.evidence")
    assert folder_of(None, project) == project / "baselines"
