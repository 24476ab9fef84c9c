"""Baselines of several states: what differs between two of them, and the series of records over the commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.files import decode
from pytest_gpuperf.baselines.git_objects import GitFolder, run_git
from pytest_gpuperf.baselines.layout import place_of, record_file
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.records import RecordFile
from pytest_gpuperf.baselines.store import Baselines
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, WorkloadRecords

_FIELDS = "%H%x1f%cI%x1f%s%x1e"
RecordsByKey = defaultdict[Key, WorkloadRecords]


class Difference(NamedTuple):
    """What two states have on record of the workloads of files that differ."""

    before: Mapping[Key, WorkloadRecords]
    after: Mapping[Key, WorkloadRecords]
    elsewhere: frozenset[Key]
    """Those that files have which do not differ."""
    manifests: tuple[Manifest | None, Manifest | None]
    """Both None if they do not differ."""
    skipped: tuple[str, ...]
    """A line for each file that could not be read; it is left out on both sides."""
    compared: bool
    """Whether there is a file that was not left out."""


def difference(before: Baselines, after: Baselines) -> Difference:
    """Everything of the files that differ.  Raises ``BaselineError`` if a folder cannot be listed."""
    old, new, elsewhere = no_records(), no_records(), no_records()
    equal, skipped = list[tuple[str, str]](), list[str]()
    places = sorted(filter(None, map(place_of, {*before.files, *after.files})))
    for target, module in places:
        try:
            if not _differ(before, after, target, module):
                equal.append((target, module))
                continue
            files = before.load(target, module), after.load(target, module)
        except BaselineError as error:
            skipped.append(str(error).splitlines()[0])
            continue
        for records, file in zip((old, new), files, strict=True):
            add_records(records, module, file)
    modules = {key.module for key in old.keys() ^ new.keys()}
    for target, module in equal:
        if module in modules:
            add_records(elsewhere, module, after.load(target, module))
    manifests: tuple[Manifest | None, Manifest | None] = None, None
    try:
        manifests = _manifests(before, after)
    except BaselineError as error:
        skipped.append(str(error).splitlines()[0])
    compared = len(skipped) < len(places)
    return Difference(dict(old), dict(new), frozenset(elsewhere), manifests, tuple(skipped), compared)


def _differ(before: Baselines, after: Baselines, target: str, module: str) -> bool:
    path = record_file(target, module)
    return before.files.get(path) != after.files.get(path)


def _manifests(before: Baselines, after: Baselines) -> tuple[Manifest | None, Manifest | None]:
    contents = before.files.get(manifest.FILE), after.files.get(manifest.FILE)
    if contents[0] == contents[1]:
        return None, None
    names = f"{before.name}/{manifest.FILE}", f"{after.name}/{manifest.FILE}"
    one, other = (
        None if content is None else manifest.decoded(content, name)
        for content, name in zip(contents, names, strict=True)
    )
    return one, other


def no_records() -> RecordsByKey:
    """A mapping that fills itself."""
    return defaultdict(lambda: WorkloadRecords({}, {}))


def add_records(records: RecordsByKey, module: str, file: RecordFile[Any]) -> None:
    """Add a file's records to those of their workloads."""
    for name, record in file.records.items():
        known = records[name.key(module)]
        if isinstance(record, StaticRecord):
            known.static[file.target, name.toolchain] = record
        else:
            known.times[file.target] = record


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


def records_of(folder: GitFolder, commits: list[PastCommit]) -> Iterator[PastRecord]:
    """Everything on record at these commits; an unchanged file is decoded once, a damaged one is left out."""
    known: dict[str, tuple[bytes, RecordFile[Any]]] = {}
    for commit in commits:
        for path, content in sorted(folder.files(commit.name).items()):
            if (place := place_of(path)) is None:
                continue
            target, module = place
            if path not in known or known[path][0] != content:
                try:
                    known[path] = content, decode(content, f"{commit.name}:{path}", target)
                except BaselineError:
                    continue
            for name, record in known[path][1].records.items():
                where = f"{target}, {name.toolchain}" if name.toolchain else target
                yield PastRecord(commit, name.key(module), where, record)
