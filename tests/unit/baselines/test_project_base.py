"""What is the project's own: files at the commit where the change under test left the default branch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from git_samples import as_another_user, commit, git

from pytest_gpuperf.baselines import git_objects, project_base
from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.baselines.layout import cubin_named, cubin_path
from pytest_gpuperf.baselines.project_base import ProjectBase, holds
from pytest_gpuperf.baselines.snapshots import object_id

PULL_REQUEST = {"GITHUB_BASE_REF": "release/1.0"}


def base_of(folder: Path, environment: Mapping[str, str] | None = None) -> ProjectBase:
    return project_base.project_base(folder, environment or {})


def add_cubin(folder: Path, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    path = cubin_path(folder / "baselines", sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return sha256


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one cubin and one record on main."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    add_cubin(folder, b"own")
    (folder / "baselines/manifest.json").write_bytes(b"{}")
    commit(folder)
    return folder


@pytest.fixture
def clone(project: Path, tmp_path: Path) -> Path:
    """A clone with a change on a branch of its own, which brings a cubin along."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project), str(folder))
    git(folder, "checkout", "-q", "-b", "change")
    add_cubin(folder, b"brought")
    commit(folder)
    return folder


OWN, BROUGHT = (hashlib.sha256(content).hexdigest() for content in (b"own", b"brought"))


def test_the_base_of_a_change_lacks_what_it_brought(clone: Path, project: Path) -> None:
    base = base_of(clone)
    assert (base.commit, base.branch) == (git(project, "rev-parse", "HEAD"), "origin/HEAD")
    assert base.cubins == {OWN}
    assert base.records == {object_id(b"{}", "sha1")}
    assert base.name == f"{base.commit[:12]} of origin/HEAD"


def test_what_the_default_branch_got_later_is_not_of_the_base(clone: Path, project: Path) -> None:
    add_cubin(project, b"later")
    commit(project)
    git(clone, "fetch", "-q")
    assert base_of(clone).cubins == {OWN}


def test_a_merge_commit_of_a_pull_request_has_the_target_as_its_base(clone: Path) -> None:
    git(clone, "checkout", "-q", "--detach", "origin/main")
    git(clone, "merge", "-q", "--no-ff", "-m", "merge", "change")
    assert base_of(clone, {"GITHUB_BASE_REF": "main"}).cubins == {OWN}


@pytest.mark.parametrize("variable", project_base.TARGETS)
def test_the_target_that_the_service_names_comes_first(clone: Path, project: Path, variable: str) -> None:
    git(project, "checkout", "-q", "-b", "release/1.0")
    add_cubin(project, b"brought")
    commit(project)
    git(clone, "fetch", "-q")
    git(clone, "rebase", "-q", "origin/release/1.0")
    base = base_of(clone, {variable: "release/1.0"})
    assert (base.branch, base.cubins) == ("origin/release/1.0", {OWN, BROUGHT})
    assert base_of(clone).cubins == {OWN}


@pytest.mark.parametrize("name", ["main", "master"])
def test_the_usual_names_stand_in_for_a_head_that_is_not_known(clone: Path, project: Path, name: str) -> None:
    git(project, "branch", "-m", name)
    git(clone, "fetch", "-q", "--prune")
    git(clone, "remote", "set-head", "origin", "--delete")
    assert base_of(clone).branch == f"origin/{name}"


def test_a_tag_or_branch_of_the_change_s_own_does_not_pass_for_the_default_branch(clone: Path) -> None:
    for name in ("origin/main", "origin/HEAD", "main"):
        git(clone, "tag", name, "change")
    git(clone, "branch", "-f", "main", "change")
    git(clone, "branch", "origin/main", "change")
    assert base_of(clone).cubins == {OWN}


def test_on_the_default_branch_all_that_is_committed_is_the_projects(clone: Path) -> None:
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "change")
    git(clone, "push", "-q", "origin", "main:pushed")
    git(clone, "update-ref", "refs/remotes/origin/main", "main")
    add_cubin(clone, b"not committed")
    assert base_of(clone).cubins == {OWN, BROUGHT}


def test_one_call_lists_all_folders_of_baselines(project: Path) -> None:
    git(project, "mv", "baselines", "kept")
    other = add_cubin(project, b"other")
    commit(project)
    assert base_of(project).cubins == {OWN, other}


@pytest.mark.parametrize(
    "path", ["cubins/ab/{0}.txt", "cubins/xx/{0}.cubin.z", "code/ab/{0}.cubin.z", "cubins/ab/abc.cubin.z", "{0}.cubin"]
)
def test_a_file_that_lies_where_no_cubin_does_names_none(path: str) -> None:
    sha256 = "ab" * 32
    assert cubin_named(Path("cubins/ab") / f"{sha256}.cubin.z") == sha256
    assert cubin_named(Path(path.format(sha256))) == ""


def test_a_repository_without_a_remote_has_a_branch_of_its_own(project: Path) -> None:
    assert base_of(project).branch == "main"
    git(project, "checkout", "-q", "-b", "change")
    add_cubin(project, b"brought")
    commit(project)
    assert (base_of(project).branch, base_of(project).cubins) == ("main", {OWN})
    git(project, "branch", "-D", "main")
    assert (base_of(project).branch, base_of(project).cubins) == ("change", {OWN, BROUGHT})
    git(project, "checkout", "-q", "--detach")
    assert base_of(project).branch == "change"


def test_the_only_branch_is_not_the_target_of_a_pull_request(project: Path) -> None:
    git(project, "branch", "-m", "change")
    assert base_of(project).branch == "change"
    with pytest.raises(RevisionError, match=r"git knows no origin/release/1\.0: fetch the default branch, in"):
        base_of(project, PULL_REQUEST)


def test_a_commit_that_was_fetched_by_itself_has_no_base(clone: Path, tmp_path: Path) -> None:
    lone = tmp_path / "lone"
    lone.mkdir()
    git(lone, "init", "-q", "-b", "none")
    git(lone, "fetch", "-q", str(clone), "change")
    git(lone, "checkout", "-q", "--detach", "FETCH_HEAD")
    with pytest.raises(RevisionError, match="git knows no origin/HEAD, origin/main or origin/master"):
        base_of(lone)


def test_several_branches_of_other_names_leave_it_open(project: Path) -> None:
    git(project, "branch", "-m", "one")
    git(project, "branch", "two")
    with pytest.raises(RevisionError, match="git knows no origin/HEAD"):
        base_of(project)


def test_a_shallow_clone_of_a_branch_is_told_how_to_get_the_rest(clone: Path, tmp_path: Path) -> None:
    git(clone, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{clone}", "shallow")
    with pytest.raises(RevisionError, match=r"is shallow .*fetch-depth: 0 \(GitLab: GIT_DEPTH: 0\)"):
        base_of(tmp_path / "shallow", {"GITHUB_BASE_REF": "main"})


def test_a_shallow_clone_of_the_default_branch_is_its_own_base(project: Path, tmp_path: Path) -> None:
    (project / "more").write_text("")
    commit(project)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{project}", "shallow")
    assert base_of(tmp_path / "shallow").cubins == {OWN}


def test_unrelated_histories_are_told_apart(clone: Path) -> None:
    git(clone, "checkout", "-q", "--orphan", "other")
    commit(clone)
    with pytest.raises(RevisionError, match="HEAD and refs/remotes/origin/HEAD have no commit in common"):
        base_of(clone)


def test_a_submodule_is_the_superprojects(project: Path, clone: Path) -> None:
    """Whose address a change may edit: what is committed there is not the project's."""
    allowed = ("-c", "protocol.file.allow=always")
    git(clone, *allowed, "submodule", "add", "-q", str(project), "sub")
    commit(clone)
    top = base_of(clone)
    assert base_of(clone / "sub") == top
    assert top.cubins == {OWN}
    add_cubin(clone / "sub", b"of the submodule")
    commit(clone / "sub")
    git(clone / "sub", "update-ref", "refs/remotes/origin/main", "HEAD")
    assert base_of(clone / "sub/baselines").cubins == {OWN}


def test_a_folder_that_looks_like_a_bare_repository_is_none(clone: Path) -> None:
    """Git would run what its settings name."""
    git(clone, "init", "-q", "--bare", "baselines/bare")
    top = base_of(clone)
    with pytest.raises(RevisionError, match="cannot use bare repository"):
        base_of(clone / "baselines/bare")
    assert base_of(clone / "baselines") == top


def test_a_repository_of_another_user_is_told_so(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_another_user(monkeypatch)
    with pytest.raises(RevisionError, match=f"of another user.*--add safe.directory {clone}$"):
        base_of(clone / "baselines")


def test_no_repository_no_commit_and_no_git_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RevisionError, match="is in no git repository with a working tree"):
        base_of(tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    with pytest.raises(RevisionError, match="has no commit yet"):
        base_of(tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RevisionError, match="Install git"):
        base_of(tmp_path)


def test_the_base_holds_what_it_descends_from(clone: Path, project: Path) -> None:
    base = base_of(clone)
    assert holds(clone, base, base.commit)
    assert not holds(clone, base, git(clone, "rev-parse", "HEAD"))
    assert not holds(clone, base, "0" * 40)
    assert not holds(clone, base, "--all")


def test_git_is_asked_as_often_for_many_cubins_as_for_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = git_objects.subprocess.run, []

    def counted(command: list[str], **more: object) -> object:
        asked.append(command)
        return real(command, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(git_objects.subprocess, "run", counted)
    base_of(project)
    for_one = len(asked)
    for number in range(50):
        add_cubin(project, b"%d" % number)
    commit(project)
    asked.clear()
    assert len(base_of(project).cubins) == 51
    assert len([one for one in asked if "user.name=A" not in one]) == for_one <= 5
