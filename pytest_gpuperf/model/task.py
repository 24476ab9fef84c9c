"""Child processes: their command lines, their tasks, and the revision that one of them runs.

A task is a JSON file that the run which starts a child writes, named by ``--gpuperf-task``.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.model.evidence import Key, Record
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.model.verdict import EvidenceKind

# --- command lines -------------------------------------------------------------------------------
# ``python -m`` and ``python -c`` put the current folder first on the path: a ``copy.py`` of the user's would be taken
# for the standard library's.  ``-P`` came with Python 3.11.

WITHOUT_FOLDER = "import sys; getattr(sys.flags, 'safe_path', 0) or sys.path.pop(0); "
AS_COMMAND = f"{WITHOUT_FOLDER}import pytest; sys.exit(pytest.main())"
"""As the command ``pytest``."""
# --- tasks ---------------------------------------------------------------------------------------


class SuspectPlace(Record, frozen=True):
    """One figure of a workload that a second process confirms."""

    key: Key
    kind: EvidenceKind


class ConfirmTest(Record, frozen=True, tag="confirm"):
    """Asks a confirming process to run a test and measure once more what was slower or worse in it."""

    node_id: str
    places: tuple[SuspectPlace, ...]
    """What to measure; a finding answers each, in any order."""
    other_first: Key | None = None
    """The other revision's process reaches this callable before this one starts its test: it takes its memory first."""

    def confirms(self, key: Key) -> bool:
        """Whether anything of this workload is to be measured."""
        return any(place.key == key for place in self.places)


class ConfirmTask(Record, frozen=True, tag="confirm"):
    """Confirm, on request, what was slower or worse in the process that gates."""

    takes_times: ClassVar[bool] = True
    folder: Path
    """For the files of this process."""
    reading: int
    """File descriptor of the pipe that says what to do."""
    writing: int
    """File descriptor of the pipe that takes the answers."""


class ProfileTask(Record, frozen=True, tag="profile"):
    """Run workloads under ncu, each in a range of its own."""

    takes_times: ClassVar[bool] = False
    folder: Path
    nodes: tuple[str, ...]
    cache: CacheMode
    """The L2 that this process gives to its workloads; those that want another are put off."""
    metrics: tuple[str, ...]
    """Canonical names that are collected, or were found not to exist; workloads that want more are put off."""


class Revision(Record, frozen=True):
    """Facts on the revision that a run compares with, without its evidence."""

    commit: str
    """In full."""
    name: str
    """For people: ``3f9a2c1b04de (2026-11-20, Unroll the inner loop)``."""
    archs: tuple[str, ...]
    """Architectures that its machine code is made for."""
    top: Path = Path()
    """Of the working tree that is compared with it."""
    others: tuple[Path, ...] = ()
    """All working trees of the repository but ``tree``: its process may use nothing of them."""
    tree: Path = Path()
    """The worktree that it is checked out in, for as long as the run lasts; links resolved."""
    lacking: dict[str, str] = msgspec.field(default_factory=dict)
    """Why tests that ran by now left no evidence, or not all of it, by node id: ``its test fails there: ...``."""


class RevisionTask(Record, frozen=True, tag="revision"):
    """Run another revision's tests on request, and measure its callables interleaved with this one's."""

    takes_times: ClassVar[bool] = True
    folder: Path
    """For the files of this process."""
    revision: Revision
    reading: int
    """File descriptor of the pipe that says what to do."""
    writing: int
    """File descriptor of the pipe that takes the answers."""
    worker: int | None = None
    """Number of the pytest-xdist worker that it works for, whose GPU it uses."""


ChildTask = ConfirmTask | ProfileTask | RevisionTask


def flag_of(task: ChildTask) -> str:
    """The flag that gives a child its task, which is left in its folder."""
    path = task.folder / "task.json"
    write_whole(path, msgspec.json.encode(task, enc_hook=str))
    return f"--gpuperf-task={path}"


def read_task(path: Path) -> ChildTask:
    """The task in this file.  Raises ``OSError``, and ``ValueError`` if there is none in it."""
    try:
        task: ChildTask = msgspec.json.decode(path.read_bytes(), type=ChildTask, dec_hook=lambda _, text: Path(text))
    except msgspec.DecodeError as problem:
        raise ValueError(f"it holds no task ({problem})") from None
    return task


# --- a revision ----------------------------------------------------------------------------------

REVISION_FILE = "revision.json"


def read_revision(folder: Path) -> Revision | None:
    """What ``folder`` says of the revision whose evidence it holds; None of a folder of baselines."""
    try:
        content = (folder / REVISION_FILE).read_bytes()
        return msgspec.json.decode(content, type=Revision, dec_hook=lambda _, text: Path(text))
    except (OSError, msgspec.DecodeError):
        return None
