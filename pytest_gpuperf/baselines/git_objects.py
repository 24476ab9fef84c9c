"""A folder as git has it at a revision: read only, by ``git ls-tree`` and one ``git cat-file --batch``."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, NamedTuple

from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted

_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git tells its hooks of the repository that they run for; the folder says which one is meant."""
NO_BARE_REPOSITORY = ("-c", "safe.bareRepository=explicit")
"""A folder of a change may look like a bare repository, whose settings name programs that git would run."""
NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
_PLAIN = ("-c", "log.showSignature=false", "-c", "i18n.logOutputEncoding=UTF-8")
"""What a user may have set for their eyes: a line before a signed commit, and words in another encoding."""
_LINK, SUBMODULE = "120000", "160000"
_CHUNK = 1 << 20
_REFUSED = re.compile(r"repository at '(.+)'")


class RevisionError(BaselineError):
    """Git has no such revision, or cannot be asked; the message says what to do."""


class TreeEntry(NamedTuple):
    """One file of a tree."""

    path: PurePosixPath
    """Seen from the folder; names that are not UTF-8 have surrogates."""
    object_id: str
    problem: str
    """Why its content is not to be read; empty for a regular file."""


class GitFolder:
    """A folder inside of a repository.  It need not be in the working tree, nor at every revision."""

    def __init__(self, folder: Path) -> None:
        """Raises ``RevisionError`` if the folder is in no repository, or there is no git."""
        resolved = folder.resolve()
        self._start = next(path for path in (resolved, *resolved.parents) if path.is_dir())
        top = run_git(self._start, "rev-parse", "--show-toplevel")
        if top.returncode:
            refuse_another_users(folder, top)
            raise RevisionError(
                f"{folder} is in no git repository, so there is nothing to compare with (git says: {said(top)}). "
                "Start gpuperf in a repository, or name the folder of the baselines in one with --baselines DIR"
            )
        self._top = Path(os.fsdecode(top.stdout).rstrip("\n")).resolve()
        self.inside = PurePosixPath(resolved.relative_to(self._top).as_posix())
        """Where it lies in the repository; ``.`` for the repository itself."""

    def commit(self, revision: str) -> str:
        """Full id of the commit that a revision names.  Raises ``RevisionError``."""
        if revision.startswith("-"):  # which git would take for an option
            raise RevisionError(f"'{quoted(revision)}' is no revision. Name a commit, a branch or a tag")
        found = run_git(self._start, "rev-parse", "--verify", f"{revision}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode("ascii", "replace").strip()
        if is_shallow(self._start):
            remedy = (
                "This clone is shallow: fetch the rest by git fetch --unshallow, "
                "in CI by a checkout with fetch-depth: 0"
            )
        elif not run_git(self._start, "rev-list", "--max-count=1", "--all").stdout:
            remedy = "The repository has no commit yet: make the first one by git add and git commit"
        else:
            remedy = "Name a commit, a branch or a tag that git log shows; one of another clone wants a git fetch first"
        raise RevisionError(f"git knows no revision '{quoted(revision)}' ({said(found)}). {remedy}")

    def entries(self, commit: str) -> list[TreeEntry]:
        """Every file below the folder at a commit; none if it was not there.  Raises ``RevisionError``."""
        inside = () if self.inside == PurePosixPath() else ("--", str(self.inside))
        listed = run_git(self._top, "ls-tree", "-r", "-z", "--full-tree", commit, *inside)
        if listed.returncode:
            raise RevisionError(f"git cannot list {self.inside} of {commit[:12]} ({said(listed)}). Try git fsck")
        found = [_entry(line, self.inside) for line in os.fsdecode(listed.stdout).split("\0") if line]
        return sorted(found)

    @property
    def hash_name(self) -> str:
        """``sha1`` or ``sha256``: what names the repository's files."""
        said = run_git(self._start, "rev-parse", "--show-object-format").stdout.decode("ascii", "replace").strip()
        return said if said in ("sha1", "sha256") else "sha1"  # a git before 2.25 knows no other

    def open(self) -> ObjectReader:
        """The reader of this repository's files."""
        return ObjectReader(self._top)


class ObjectReader:
    """Content of files by their object id, from one git process for all of them; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ObjectReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def read(self, object_id: str, limit: int) -> bytes | None:
        """The content, ``limit + 1`` bytes of it if it is longer; None if git lacks it.  Raises ``RevisionError``."""
        requests, answers = self._pipes()
        try:
            requests.write(f"{object_id}\n".encode())
            requests.flush()
            head = answers.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                if not head or head[-1] != b"missing":
                    raise RevisionError(f"git ended while it read object {object_id[:12]}. Try git fsck")
                return None
            size = int(head[2])
            content = answers.read(min(size, limit + 1))
            _skip(answers, size - len(content) + 1)  # and the line's end
        except BrokenPipeError:
            raise RevisionError(f"git ended while it read object {object_id[:12]}. Try git fsck") from None
        return content

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = subprocess.Popen(
                ["git", "cat-file", "--batch"], cwd=self._folder, env=git_environment(), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (read := len(stream.read(min(size, _CHUNK)))):
        size -= read


def _entry(line: str, inside: PurePosixPath) -> TreeEntry:
    """Of ``100644 blob 3f9a...<tab>path``."""
    head, _, name = line.partition("\t")
    mode, _, object_id = head.split(" ")
    problem = {_LINK: "it is a link", SUBMODULE: "it is a submodule"}.get(mode, "")
    return TreeEntry(PurePosixPath(name).relative_to(inside), object_id, problem)


def run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, whatever repository a hook runs for.  Raises ``RevisionError`` if it cannot be started."""
    command = ["git", *NO_BARE_REPOSITORY, *_PLAIN, "--literal-pathspecs", *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, env=git_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as problem:
        raise RevisionError(
            f"git cannot be started ({problem.strerror or problem}). Install git, or see to PATH"
        ) from None


def is_shallow(folder: Path) -> bool:
    """Whether the repository around a folder lacks a part of its history.  Raises ``RevisionError`` without git."""
    return run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"


def git_environment() -> Mapping[str, str]:
    """That of this process, less what tells git of another repository than that of the folder."""
    own = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    return {**own, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def refuse_another_users(folder: Path, done: subprocess.CompletedProcess[bytes]) -> None:
    """Raise ``RevisionError`` with the remedy where git failed as the repository belongs to another user."""
    complaint = done.stderr.decode("utf-8", "replace")
    if "dubious ownership" not in complaint:
        return
    named = _REFUSED.search(complaint)
    path = named[1] if named else str(folder.resolve())
    raise RevisionError(
        f"{folder} is in a git repository of another user, which git does not read (it says: {said(done)}). If you "
        f"trust it: git config --global --add safe.directory {shlex.quote(quoted(path, 400))}"
    )


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line of what git complained about."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return quoted(lines[0].removeprefix("fatal: "), 200) if lines else f"exit status {done.returncode}"
