"""What is read from git: a folder at a revision, cubins that may be launched, whatever the user has configured."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from baseline_samples import make_static, static_update
from git_samples import as_another_user, commit, git

from pytest_gpuperf.baselines import git_objects
from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError, git_environment, git_message
from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.trust import TARGETS, BaselineTrust
from pytest_gpuperf.cli.history_command import commits_of
from pytest_gpuperf.process.repository import branch_of, changed_since, commit_of
from pytest_gpuperf.revision.worktree import described, repository_of, working_trees, worktree_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Baselines of one workload, in two commits."""
    root = tmp_path / "baselines"
    (tmp_path / "elsewhere.json").write_text("no baseline")
    for registers in (32, 40):
        BaselineStore(root).write(static_update(make_static(registers)))
        commit(tmp_path)
    return root


def content(folder: Path, revision: str = "HEAD") -> dict[str, bytes]:
    git_folder = GitFolder(folder)
    return git_folder.files(git_folder.commit(revision))


def test_the_mapping_of_a_revision_is_that_of_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this repository, not of that of a hook; also where the sdist leaves it out, and when it is gone since."""
    store = BaselineStore(root)
    files = {name: store.content(name) for name in ("manifest.json", *store.paths())}
    monkeypatch.setenv("GIT_DIR", str(root / "none" / ".git"))
    assert content(root) == files
    assert content(root, "HEAD~1") != files
    monkeypatch.delenv("GIT_DIR")
    (root.parent / ".gitattributes").write_text("baselines export-ignore\n")
    commit(root.parent)
    assert content(root.parent / "none") == {}
    git(root.parent, "rm", "-rq", "baselines")
    assert content(root) == files


def test_the_folder_may_be_the_repository_and_links_are_left_out(tmp_path: Path) -> None:
    BaselineStore(tmp_path).write(static_update())
    (tmp_path / "sm_90" / "link.jsonl").symlink_to("/etc/passwd")
    commit(tmp_path)
    assert sorted(content(tmp_path)) == ["manifest.json", "sm_90/example_suite/test_transpose.jsonl"]


def test_what_git_says_is_one_line_and_is_asked_for_without_a_person() -> None:
    long = b"x" * 500, "x" * 397 + "..."
    for stderr, words in ((b"fatal: no\n  such\xff", "no such\ufffd"), (b"", "exit status 3"), long):
        assert git_message(subprocess.CompletedProcess([], 3, b"", stderr)) == words
    asked = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    assert asked.items() <= git_environment().items()


def test_place_that_git_does_not_read_is_refused(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for revision in ("no-such-branch", "--all", "HEAD~9", ""):
        with pytest.raises(RevisionError, match="Name a commit, a branch or a tag"):
            content(root, revision)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root.parent}", "shallow")
    with pytest.raises(RevisionError, match="git fetch --unshallow"):
        content(tmp_path / "shallow" / "baselines", "HEAD~1")
    with pytest.raises(RevisionError, match="git reads no repository at"):
        GitFolder(tmp_path.parent)
    monkeypatch.setattr(git_objects, "MAX_FILE_BYTES", 1 << 20)
    (root / "large.json").write_bytes(bytes(1 << 20))
    commit(root.parent)
    assert len(content(root)) == 3
    (root / "large.json").write_bytes(bytes((1 << 20) + 1))
    commit(root.parent)
    with pytest.raises(RevisionError, match=r"^large\.json is larger than 1 MB at that commit$"):
        content(root)
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(RevisionError, match="Install git"):
        GitFolder(root)


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
    assert BaselineTrust(clone, everything=True).why_not_launched(BROUGHT) == ""
    for name in ("origin/main", "origin/HEAD", "main"):  # own refs are not the default branch
        git(clone, "tag", name, "change")
    git(clone, "branch", "-f", "main", "change")
    assert launched(clone) == {OWN}


def test_without_a_remote_its_own_main_is_the_default_branch(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "change")
    add_cubin(project, b"brought")
    assert launched(project) == {OWN}
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "change")
    assert launched(project) == {OWN, BROUGHT}
    git(project, "reset", "-q", "--soft", "HEAD~1")
    assert launched(project) == {OWN}, "what is not committed is not launched"


def test_named_target_comes_before_usual_names(clone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(project, "checkout", "-q", "-b", "release/1.0")
    add_cubin(project, b"brought")
    git(clone, "fetch", "-q")
    git(clone, "rebase", "-q", "origin/release/1.0")
    assert launched(clone) == {OWN}
    for variable in TARGETS:
        monkeypatch.setenv(variable, "release/1.0")
        assert launched(clone) == {OWN, BROUGHT}
        monkeypatch.delenv(variable)
    git(clone, "remote", "set-head", "origin", "--delete")
    assert launched(clone) == {OWN}
    git(project, "branch", "-m", "main", "master")
    git(clone, "fetch", "-q", "--prune")
    assert launched(clone) == {OWN}


def test_doubt_launches_nothing(tmp_path: Path, clone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{clone}", str(shallow))
    git(shallow, "update-ref", "-d", "refs/remotes/origin/HEAD")
    for folder, words in (
        (shallow, "git knows no commit in common with origin/HEAD"),
        (tmp_path, "git reads no repository"),
    ):
        assert launched(folder) == set()
        why = BaselineTrust(folder, everything=False).why_not_launched(OWN)
        assert why.startswith("it is not known whether its baseline's cubin came with this change (")
        assert words in why
    as_another_user(monkeypatch)
    assert "safe.directory" in BaselineTrust(project, everything=False).why_not_launched(OWN)
    monkeypatch.setenv("PATH", "")
    assert "Install git" in BaselineTrust(project, everything=False).why_not_launched(OWN)


FAKE_GPG = """#!/bin/sh
case "$*" in
*--verify*) echo "gpg: Signature made at noon" >&2; echo "[GNUPG:] GOODSIG 0 A" ;;
*) cat > /dev/null; printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
   printf '\\n[GNUPG:] SIG_CREATED ' >&2 ;;
esac
"""
CONFIGURED = {
    "log.showSignature": "true", "log.decorate": "full", "log.date": "relative", "log.abbrevCommit": "true",
    "format.pretty": "oneline", "i18n.logOutputEncoding": "ISO-8859-1", "color.ui": "always", "core.quotePath": "true",
    "core.pager": "tr a-z A-Z", "diff.noprefix": "true", "diff.external": "false", "diff.relative": "true",
    "status.relativePaths": "true", "status.branch": "true", "status.short": "true",
}  # fmt: skip


def test_configuration_of_a_user_changes_nothing(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By commands for people and by those for programs; the last commit is signed, and a file changed since."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (tmp_path / "gpg").write_text(FAKE_GPG)
    (tmp_path / "gpg").chmod(0o755)
    git(root, "config", "--global", "gpg.program", str(tmp_path / "gpg"))
    (root / "sm_90" / "test_\u00fc.jsonl").write_text("third")
    git(root, "add", ".")
    git(root, "commit", "-q", "-S", "-m", "Gr\u00fc\u00dfe")
    (root / "sm_90" / "test_\u00fc.jsonl").write_text("changed")

    def read() -> list[object]:
        name = GitFolder(root).commit("HEAD")
        with worktree_of(root, name) as tree:
            return [
                commits_of(root), described(root, name), content(root), branch_of(root), repository_of(root),
                commit_of(root), commit_of(root, root), changed_since(root, name), tree, working_trees(root),
            ]  # fmt: skip

    plain = read()
    for name, value in CONFIGURED.items():
        git(root, "config", "--global", name, value)
    assert "Signature made" in git(root, "log", "-1", "--format=%H"), "git heeds it"
    assert read() == plain
    assert commits_of(root)[-1].subject == "Gr\u00fc\u00dfe"
    assert described(root, "HEAD").endswith(", Gr\u00fc\u00dfe)")
