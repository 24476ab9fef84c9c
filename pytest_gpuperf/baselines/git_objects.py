"""A folder as git has it at a revision: read only, by ``git archive``."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.layout import RECORDS
from pytest_gpuperf.baselines.records import MAX_FILE_BYTES

_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git tells its hooks of the repository that they run for; the folder says which one is meant."""
NO_BARE_REPOSITORY = ("-c", "safe.bareRepository=explicit")
"""A folder of a change may look like a bare repository, whose settings name programs that git would run."""
NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
_PLAIN = ("-c", "log.showSignature=false", "-c", "i18n.logOutputEncoding=UTF-8")
"""What a user may have set for their eyes: a line before a signed commit, and words in another encoding."""


class RevisionError(BaselineError):
    """Git has no such revision, or cannot be asked; the message says what to do."""


class GitFolder:
    """A folder inside of a repository.  It need not be in the working tree, nor at every revision."""

    def __init__(self, folder: Path) -> None:
        """Raises ``RevisionError`` if the folder is in no repository, or there is no git."""
        resolved = folder.resolve()
        self._start = next(path for path in (resolved, *resolved.parents) if path.is_dir())
        top = run_git(self._start, "rev-parse", "--show-toplevel")
        if top.returncode:
            raise RevisionError(
                f"git reads no repository at {folder} ({git_message(top)}): there is nothing to compare with. To do: "
                "start gpuperf in a repository, or name the folder of the baselines with --baselines DIR"
            )
        self._top = Path(os.fsdecode(top.stdout).rstrip("\n")).resolve()
        self.inside = PurePosixPath(resolved.relative_to(self._top).as_posix())
        """Where it lies in the repository; ``.`` for the repository itself."""

    def commit(self, revision: str) -> str:
        """Full id of the commit that a revision names.  Raises ``RevisionError``."""
        found = run_git(self._start, "rev-parse", "--verify", f"{revision}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
        remedy = "Name a commit, a branch or a tag that git log shows; one of another clone wants a git fetch first"
        if is_shallow(self._start):
            remedy = "This clone is shallow: git fetch --unshallow; in CI a checkout with fetch-depth: 0"
        raise RevisionError(f"git knows no revision '{quoted(revision)}' ({git_message(found)}). {remedy}")

    def files(self, commit: str) -> dict[str, bytes]:
        """Content of the records and the manifest at a commit, by their paths in the folder; none if it was not there.

        Raises ``RevisionError``.
        """
        tree = commit if self.inside == PurePosixPath() else f"{commit}:{self.inside}"
        if run_git(self._top, "rev-parse", "--verify", tree).returncode:
            return {}
        command = ["git", *NO_BARE_REPOSITORY, "archive", "--format=tar", tree]
        try:
            with subprocess.Popen(
                command, cwd=self._top, env=git_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process, tarfile.open(fileobj=process.stdout, mode="r|") as archive:  # fmt: skip
                return dict(_contents(archive))
        except (OSError, tarfile.TarError) as problem:
            raise RevisionError(
                f"git cannot archive {self.inside} of {commit[:12]} ({problem}). Try git fsck"
            ) from problem


def _contents(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if not member.isfile() or not member.name.endswith((RECORDS, ".json")):
            continue
        if member.size > MAX_FILE_BYTES:
            raise RevisionError(f"{quoted(member.name, 200)} is larger than {MAX_FILE_BYTES >> 20} MB at that commit")
        file = archive.extractfile(member)
        if file is not None:
            yield member.name, file.read()


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


def git_message(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git complained about, in one line: of a repository of another user, how to trust it."""
    text = " ".join(done.stderr.decode("utf-8", "replace").split())
    return quoted(text.removeprefix("fatal: "), 400) or f"exit status {done.returncode}"
