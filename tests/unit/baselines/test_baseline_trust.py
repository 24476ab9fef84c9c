"""Under CI no stored cubin is launched that the default branch lacks."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from git_samples import as_another_user, commit, git

from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.baselines.trust import TARGETS, BaselineTrust

OWN, BROUGHT = (hashlib.sha256(content).hexdigest() for content in (b"own", b"brought"))


def add_cubin(folder: Path, content: bytes) -> None:
    path = cubin_path(folder / "baselines", hashlib.sha256(content).hexdigest())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    commit(folder)


def launched(folder: Path) -> set[str]:
    trust = BaselineTrust(folder, everything=False)
    return {sha256 for sha256 in (OWN, BROUGHT) if not trust.why_not_launched(sha256)}


@pytest.fixture(autouse=True)
def no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TARGETS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Without a remote, with one cubin on its only branch, main."""
    folder = tmp_path / "project"
    folder.mkdir()
    add_cubin(folder, b"own")
    return folder


@pytest.fixture
def clone(project: Path, tmp_path: Path) -> Path:
    """With a change on a branch of its own, which brings a cubin along."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project), str(folder))
    git(folder, "checkout", "-q", "-b", "change")
    add_cubin(folder, b"brought")
    return folder


def test_cubin_that_a_change_brought_is_not_launched(clone: Path, project: Path) -> None:
    assert launched(clone) == {OWN}
    why = BaselineTrust(clone, everything=False).why_not_launched(BROUGHT)
    head = git(project, "rev-parse", "HEAD")[:12]
    assert why == f"its baseline's cubin came with this change (it is not in {head} of origin/HEAD)"


def test_without_a_remote_its_own_main_is_the_default_branch(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "change")
    add_cubin(project, b"brought")
    assert launched(project) == {OWN}
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "change")
    assert launched(project) == {OWN, BROUGHT}


@pytest.mark.parametrize("variable", TARGETS)
def test_target_that_the_service_names_comes_first(
    clone: Path, project: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "checkout", "-q", "-b", "release/1.0")
    add_cubin(project, b"brought")
    git(clone, "fetch", "-q")
    git(clone, "rebase", "-q", "origin/release/1.0")
    assert launched(clone) == {OWN}
    monkeypatch.setenv(variable, "release/1.0")
    assert launched(clone) == {OWN, BROUGHT}


@pytest.mark.parametrize("name", ["main", "master"])
def test_usual_names_stand_in_for_an_unknown_head(clone: Path, project: Path, name: str) -> None:
    git(project, "branch", "-m", name)
    git(clone, "fetch", "-q", "--prune")
    git(clone, "remote", "set-head", "origin", "--delete")
    assert launched(clone) == {OWN}


def test_own_refs_do_not_pass_for_the_default_branch(clone: Path) -> None:
    for name in ("origin/main", "origin/HEAD", "main"):
        git(clone, "tag", name, "change")
    git(clone, "branch", "-f", "main", "change")
    assert launched(clone) == {OWN}


def test_nothing_is_launched_where_git_cannot_tell(
    tmp_path: Path, clone: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{clone}", str(shallow))
    git(shallow, "update-ref", "-d", "refs/remotes/origin/HEAD")
    for folder, said in ((shallow, "git knows no commit in common with origin/HEAD"), (tmp_path, "no git reposi")):
        assert launched(folder) == set()
        why = BaselineTrust(folder, everything=False).why_not_launched(OWN)
        assert why.startswith("it is not known whether its baseline's cubin came with this change (")
        assert said in why
    as_another_user(monkeypatch)
    assert "safe.directory" in BaselineTrust(project, everything=False).why_not_launched(OWN)


def test_a_desk_needs_no_repository(tmp_path: Path) -> None:
    assert BaselineTrust(tmp_path, everything=True).why_not_launched(BROUGHT) == ""


def test_nothing_is_launched_without_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "Install git" in BaselineTrust(project, everything=False).why_not_launched(OWN)


def test_cubin_that_is_not_committed_is_not_launched(project: Path) -> None:
    assert launched(project) == {OWN}
    add_cubin(project, b"brought")
    assert launched(project) == {OWN, BROUGHT}
    git(project, "reset", "-q", "--soft", "HEAD~1")
    assert launched(project) == {OWN}
