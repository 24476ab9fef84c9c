"""What a child process is there for: a JSON file that the run which starts it writes, named by ``--gpuperf-task``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import CacheMode, Key
from pytest_gpuperf.model.verdict import EvidenceKind

TASK_FILE = "task.json"


class SuspectPlace(Record, frozen=True):
    """One figure of a workload that a second process confirms."""

    key: Key
    kind: EvidenceKind


class ConfirmTask(Record, frozen=True, tag="confirm"):
    """Measure once more what was slower or worse in the process that gates."""

    takes_times: ClassVar[bool] = True
    folder: Path
    places: tuple[SuspectPlace, ...]
    """What to measure; what is found of each goes to the file of its number."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.key.node_id for place in self.places))

    def confirms(self, key: Key) -> bool:
        """Whether anything of this workload is to be measured."""
        return any(place.key == key for place in self.places)

    def files(self) -> tuple[Path, ...]:
        """Where what is found of each goes."""
        return tuple(self.folder / f"{number}.json" for number in range(len(self.places)))


class ProfileTask(Record, frozen=True, tag="profile"):
    """Run workloads under ncu, each in a range of its own."""

    takes_times: ClassVar[bool] = False
    folder: Path
    nodes: tuple[str, ...]
    cache: CacheMode
    """The L2 that this process gives to its workloads; those that want another are put off."""
    metrics: tuple[str, ...]
    """Canonical names that are collected, or were found not to exist; workloads that want more are put off."""
    only: tuple[Key, ...] | None = None
    """Workloads to profile; None: all that the tests have."""


class RevisionTask(Record, frozen=True, tag="revision"):
    """Stand for another revision: run its tests when told, and interleave the samples of its callables."""

    takes_times: ClassVar[bool] = True
    folder: Path
    """Where this process leaves what it finds."""
    others: tuple[Path, ...]
    """All working trees of the repository but ``tree``: of none of them anything may be used."""
    tree: Path
    """Of the worktree that this process runs in, links resolved."""
    reading: int
    """File descriptor of the pipe that says what to do."""
    writing: int
    """File descriptor of the pipe that takes the answers."""
    named: tuple[str, ...] = ()
    """Tests that the run was given by name, by node id; of files without one it takes all."""
    evidence: bool = False
    """Whether to run all tests first and leave what they run: machine code, launches and arguments."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.named

    def takes(self, node_id: str) -> bool:
        """Whether the run asks for this test."""
        of_its_file = [one for one in self.named if one.partition("::")[0] == node_id.partition("::")[0]]
        return not of_its_file or any(
            node_id == one or node_id.startswith((f"{one}::", f"{one}[")) for one in of_its_file
        )


ChildTask = ConfirmTask | ProfileTask | RevisionTask


def write_task(task: ChildTask, path: Path) -> None:
    write_whole(path, msgspec.json.encode(task, enc_hook=str))


def read_task(path: Path) -> ChildTask:
    """The task in this file.  Raises ``OSError``, and ``ValueError`` if there is none in it."""
    try:
        task: ChildTask = msgspec.json.decode(path.read_bytes(), type=ChildTask, dec_hook=lambda _, text: Path(text))
    except msgspec.DecodeError as problem:
        raise ValueError(f"it holds no task ({problem})") from None
    return task
