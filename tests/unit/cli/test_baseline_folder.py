"""Which folder a command reads: the one given, that of the last run, or the nearest; never a revision's evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.compile.cache import default_folder
from pytest_gpuperf.context import last_run
from pytest_gpuperf.context.last_run import LastRun
from pytest_gpuperf.model.revision import REVISION_FILE


def left_by_a_run(root: Path, baselines: Path) -> None:
    run = LastRun(schema=last_run.SCHEMA, date="2026-01-01T00:00:00Z", plugin="0", baselines=str(baselines), tests=())
    last_run.keep(root, run)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With a folder of the usual name, and one that the last run used."""
    for name in ("baselines", "recorded", "sub"):
        (tmp_path / name).mkdir()
    left_by_a_run(tmp_path, tmp_path / "recorded")
    return tmp_path


def test_the_one_given_comes_before_that_of_the_last_run(project: Path) -> None:
    assert folder_of(project / "sub", project) == project / "sub"
    assert folder_of(None, project / "sub") == project / "recorded"


def test_the_evidence_of_a_revision_is_no_baseline(project: Path) -> None:
    (project / "recorded" / REVISION_FILE).write_text("{}")
    assert folder_of(None, project / "sub") == project / "baselines"


def test_the_evidence_of_a_revision_that_is_gone_by_now_is_passed_over_too(project: Path) -> None:
    left_by_a_run(project, default_folder() / "revisions" / "tmp1234")
    assert folder_of(None, project) == project / "baselines"


def test_a_folder_that_the_last_run_named_and_that_is_gone_is_told(project: Path) -> None:
    left_by_a_run(project, project / "gone")
    with pytest.raises(NoFolderError, match=r"there is no folder .*gone: name that of the baselines"):
        folder_of(None, project)
