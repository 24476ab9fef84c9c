"""What the baselines of past commits have on record: a series of figures for each workload and target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.baselines.file_types import EvidenceFile
from pytest_gpuperf.baselines.git_objects import GitFolder, ObjectReader, run_git
from pytest_gpuperf.baselines.snapshots import MANIFEST, AtRevision, Place
from pytest_gpuperf.model.evidence import Key, StaticRecord, TimeRecord

_FIELDS = "%H%x1f%cI%x1f%s%x1e"


class PastCommit(NamedTuple):
    """A commit that touched the baselines."""

    name: str
    date: str
    """ISO 8601, with its time zone."""
    subject: str
    is_run: bool = False
    """What a run found at this commit, and no record of it."""


class PastRecord(NamedTuple):
    """What one commit has of one workload."""

    commit: PastCommit
    key: Key
    target: str
    """``nvidia-h200``, or the architecture and compiler of machine code: ``sm_90, nvrtc 13.0.88``."""
    record: TimeRecord | StaticRecord


def commits_of(path: Path) -> list[PastCommit]:
    """Commits that touched a folder, along first parents, the oldest first."""
    listed = run_git(path, "log", "--first-parent", "--reverse", f"--format={_FIELDS}", "--", ".")
    lines = listed.stdout.decode("utf-8", "replace").split("\x1e")
    fields = (line.strip("\n").split("\x1f") for line in lines if line.strip("\n"))
    return [PastCommit(name, date, subject) for name, date, subject in fields]


def records_of(folder: GitFolder, reader: ObjectReader, commits: list[PastCommit]) -> Iterator[PastRecord]:
    """Everything on record at these commits; a file that did not change is decoded once, one that is damaged passed."""
    decoded: dict[tuple[Place, str], EvidenceFile | None] = {}
    for commit in commits:
        state = AtRevision(commit.name, folder, reader)
        wanted = {(place, name) for place, name in state.ids.items() if place != MANIFEST}
        decoded = {one: file for one, file in decoded.items() if one in wanted}
        for place, name in sorted(wanted):
            if (place, name) not in decoded:
                decoded[place, name] = state.file(place)
            file = decoded[place, name]
            for toolchain, test, workload, record in file.records() if file is not None else ():
                target = f"{place.target}, {toolchain}" if toolchain else place.target
                yield PastRecord(commit, Key(place.module, test, workload), target, record)
