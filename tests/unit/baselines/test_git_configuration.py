"""What is read from git is the same whatever the user has configured for their eyes."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_samples import commit, git

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.cli.history_command import commits_of
from pytest_gpuperf.process.repository import branch_of, changed_since, commit_of
from pytest_gpuperf.revision.worktree import described, repository_of, working_trees, worktree_of

FAKE_GPG = """#!/bin/sh
case "$*" in
*--verify*) echo "gpg: Signature made at noon" >&2; echo "[GNUPG:] GOODSIG 0 A" ;;
*) cat > /dev/null; printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
   printf '\\n[GNUPG:] SIG_CREATED ' >&2 ;;
esac
"""
CONFIGURED = {
    "log.showSignature": "true", "log.decorate": "full", "log.date": "relative", "log.follow": "true",
    "log.abbrevCommit": "true", "format.pretty": "oneline", "i18n.logOutputEncoding": "ISO-8859-1",
    "i18n.commitEncoding": "ISO-8859-1", "color.ui": "always", "column.ui": "always", "core.pager": "tr a-z A-Z",
    "core.quotePath": "true", "diff.noprefix": "true", "diff.external": "false", "diff.relative": "true",
    "diff.orderFile": "/dev/null", "status.relativePaths": "true", "status.branch": "true", "status.showStash": "true",
    "status.short": "true",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Baselines of three commits, one of them signed, and one changed since."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (tmp_path / "gpg").write_text(FAKE_GPG)
    (tmp_path / "gpg").chmod(0o755)
    (tmp_path / "config").write_text("")
    git(tmp_path, "config", "--global", "gpg.program", str(tmp_path / "gpg"))
    found = tmp_path / "project" / "baselines"
    file = found / "sm_90" / "test_\u00fc.jsonl"
    file.parent.mkdir(parents=True)
    for text in ("first", "second", "third"):
        file.write_text(text)
        commit(found.parent, text)
    git(found, "commit", "-q", "--amend", "-S", "-m", "Gr\u00fc\u00dfe")
    file.write_text("changed")
    return found


def read(folder: Path) -> list[object]:
    """All that the plugin reads, by its commands for people and by those for programs."""
    of_git = GitFolder(folder)
    name = of_git.commit("HEAD")
    with worktree_of(folder, name) as tree:
        return [
            commits_of(folder), described(folder, name), of_git.files(name), branch_of(folder), repository_of(folder),
            commit_of(folder), commit_of(folder, folder), changed_since(folder, name), tree, working_trees(folder),
        ]  # fmt: skip


def test_what_a_user_has_configured_changes_nothing_that_is_read(folder: Path) -> None:
    plain = read(folder)
    for name, value in CONFIGURED.items():
        git(folder, "config", "--global", name, value)
    assert "Signature made" in git(folder, "log", "-1", "--format=%H"), "git heeds it"
    assert read(folder) == plain
    assert [one.subject for one in commits_of(folder)] == ["first", "second", "Gr\u00fc\u00dfe"]
    assert described(folder, "HEAD").endswith(", Gr\u00fc\u00dfe)")
