"""What a run believes of its baselines under CI, by the repository around it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from git_samples import commit, git

from pytest_gpuperf.context.baseline_trust import BaselineTrust
from pytest_gpuperf.options import Options
from pytest_gpuperf.revision.recorded import NotPaired, recorded_commit

CI = Options(ci=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a branch of its own, with one commit beyond main."""
    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)
    monkeypatch.delenv("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", raising=False)
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.json").write_text("own")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "change")
    (tmp_path / "b.json").write_text("brought")
    commit(tmp_path)
    return tmp_path


def test_a_record_is_believed_by_its_content_and_not_by_its_name(project: Path) -> None:
    (project / "a.json").rename(project / "c.json")
    (project / "a.json").write_text("edited")
    trust = BaselineTrust(CI, project)
    assert [trust.believes(project / name) for name in ("a.json", "b.json", "c.json")] == [False, False, True]


def test_a_record_that_is_not_there_says_nothing_wrong(project: Path) -> None:
    assert BaselineTrust(CI, project).believes(project / "none.json")


def test_a_record_that_cannot_be_read_is_not_believed(project: Path) -> None:
    (project / "folder.json").mkdir()
    assert not BaselineTrust(CI, project).believes(project / "folder.json")


@pytest.mark.parametrize(("options", "compiled_here"), [(Options(), False), (CI, True)])
def test_a_desk_and_what_this_run_compiled_need_no_repository(
    tmp_path: Path, options: Options, compiled_here: bool
) -> None:
    trust = BaselineTrust(options, tmp_path, compiled_here=compiled_here)
    assert (trust.why_not_launched("ab" * 32), trust.why_not_run("ab" * 20)) == ("", "")
    assert trust.believes(tmp_path / "a.json")


def test_without_a_repository_nothing_is_believed(tmp_path: Path) -> None:
    trust = BaselineTrust(CI, tmp_path)
    assert "is in no git repository" in trust.why_not_launched("ab" * 32)
    assert "is in no git repository" in trust.why_not_run("ab" * 20)
    assert not trust.believes(tmp_path / "a.json")


def test_a_commit_that_only_the_change_has_is_not_run(project: Path) -> None:
    """A later commit of the change may hide what it did."""
    trust = BaselineTrust(CI, project)
    assert trust.why_not_run(git(project, "rev-parse", "main")) == ""
    with pytest.raises(NotPaired, match=r"the commit of its record came with this change "):
        recorded_commit(*callable_recorded_at(project, git(project, "rev-parse", "change"), trust))


def callable_recorded_at(project: Path, name: str, trust: BaselineTrust) -> Any:
    session = SimpleNamespace(id="s", date="2026-11-20", commit=name, dirty=False)
    baseline = SimpleNamespace(rounds=(SimpleNamespace(session="s"),))
    worker = SimpleNamespace(
        revision=None, trust=trust, config=SimpleNamespace(stash=pytest.Stash(), rootpath=project),
        store=SimpleNamespace(sessions=lambda *_: (session,), time=lambda *_: baseline),
        device=SimpleNamespace(facts=SimpleNamespace(slug="gpu")),
    )  # fmt: skip
    return worker, SimpleNamespace(module="m")
