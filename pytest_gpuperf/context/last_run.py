"""The evidence of the last run, kept for ``gpuperf explain``.

One JSON file, ``.gpuperf/last-run.json`` below pytest's root, that the next run replaces.  It is written by the process
that reports, whole or not at all, and only if a run gathered anything.  It is no baseline: nothing is judged by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.context.repository import checkout_around
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.base_record import Record, schema_of
from pytest_gpuperf.model.result import TestEvidence

SCHEMA = 3
FOLDER = ".gpuperf"
FILE = "last-run.json"
LARGEST_BYTES = 64 << 20
"""A run whose evidence is larger is not kept; about 20 000 timed workloads."""


class LastRunError(GpuperfError):
    """The last run cannot be read or kept; the message says what to do."""


class LastRun(Record, frozen=True):
    """What a run found, and where it compared it with."""

    schema: int
    date: str
    """UTC, ISO 8601, seconds."""
    plugin: str
    baselines: str
    """Folder of the baselines, as an absolute path."""
    tests: tuple[TestEvidence, ...]
    undecided: dict[str, int] = msgspec.field(default_factory=dict)
    """Runs in a row in which a workload's time was INCONCLUSIVE with the same code and arguments, by its name."""
    root: str = ""
    """Pytest's root, as an absolute path; empty in files of earlier versions."""


def path_below(root: Path) -> Path:
    """Where the last run of this root lies."""
    return root / FOLDER / FILE


def root_of(path: Path) -> Path:
    """The root whose last run lies in ``path``."""
    return path.parent.parent


def baselines_of(path: Path, run: LastRun) -> Path:
    """The folder of the baselines of the run in ``path``: where its checkout was moved or copied, that of the copy."""
    folder = Path(run.baselines)
    return root_of(path) / folder.relative_to(run.root) if run.root and folder.is_relative_to(run.root) else folder


def keep(root: Path, run: LastRun) -> None:
    """Write ``run`` in the place of the one before.  Raises ``LastRunError``."""
    target = path_below(root)
    content = msgspec.json.encode(run)
    if len(content) > LARGEST_BYTES:
        raise LastRunError(f"the evidence of this run has {len(content)} bytes and is not kept for gpuperf explain")
    if target.parent.is_symlink():
        raise LastRunError(f"{target.parent} is a link, and nothing is written through it: remove it")
    try:
        make_folder(target.parent)
        write_whole(target, content)
    except OSError as problem:
        words = f"{target} cannot be written ({problem}): gpuperf explain will not know of this run"
        raise LastRunError(words) from problem


def make_folder(folder: Path) -> None:
    """Make the folder that this plugin has below pytest's root, of which git takes nothing.  Raises ``OSError``."""
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x") as ignore:
        ignore.write("*\n")


def undecided_in_a_row(root: Path, tests: Iterable[TestEvidence]) -> dict[str, int]:
    """``LastRun.undecided`` of a run that found this, before it is kept in the place of the one before."""
    undecided = [
        work
        for test in tests
        for work in test.workloads
        if work.time_judgement is not None and work.time_judgement.is_undecided
    ]
    if not undecided:
        return {}
    try:
        before = read(path_below(root))
    except LastRunError:
        return {str(work.key): 1 for work in undecided}
    same_work = {(work.key, work.identity) for test in before.tests for work in test.workloads}
    return {
        str(work.key): 1 + (before.undecided.get(str(work.key), 0) if (work.key, work.identity) in same_work else 0)
        for work in undecided
    }


def find(start: Path) -> Path | None:
    """The last run of ``start`` or of the nearest folder above that has one.

    One above the top of the repository counts only if it ran tests of this repository: pytest's root may lie there.
    """
    top = checkout_around(start)
    found = (path for folder in (start, *start.parents) if (path := path_below(folder)).is_file())
    return next((path for path in found if top is None or root_of(path).is_relative_to(top) or _ran(path, top)), None)


def where(start: Path) -> str:
    """The folders in which ``find`` looks, in words."""
    top = checkout_around(start)
    if top is None:
        return f"{start} or above"
    if start == top:
        return f"{start}, the top of its repository"
    return f"{start} or above, up to its repository's top {top}"


def _ran(path: Path, top: Path) -> bool:
    """Whether the run in ``path`` had tests below ``top``."""
    try:
        return any((root_of(path) / test.module).is_relative_to(top) for test in read(path).tests)
    except LastRunError:
        return False


def read(path: Path) -> LastRun:
    """The last run in ``path``.  Raises ``LastRunError`` for a file that is damaged or of another version."""
    remedy = "run pytest --gpuperf again, or read the baselines instead: gpuperf explain --baseline"
    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
    except OSError as problem:
        raise LastRunError(f"{path} cannot be read ({problem}): {remedy}") from problem
    if len(content) > LARGEST_BYTES:
        raise LastRunError(f"{path} is larger than {LARGEST_BYTES} bytes, so no run has written it: {remedy}")
    try:
        schema = schema_of(content)
        if schema != SCHEMA:
            raise LastRunError(f"{path} was written by another version (schema {schema}, this is {SCHEMA}): {remedy}")
        return msgspec.json.decode(content, type=LastRun)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise LastRunError(f"{path} is damaged ({problem}): {remedy}") from problem
