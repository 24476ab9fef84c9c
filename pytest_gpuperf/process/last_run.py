"""The evidence of the last run, kept for ``gpuperf explain``.

One report in JSON, ``.gpuperf/last-run.json`` below pytest's root, that the next run replaces, and next to it what ncu
found of a run with regressions.  It is written by the process that reports, whole or not at all, and only if a run
gathered anything.  It is no baseline: nothing is judged by it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.process.repository import checkout_around

FOLDER = ".gpuperf"
FILE = "last-run.json"
NCU_FILES = "counters-*.ncu-rep"
MOST_BYTES = 2**29
"""Of all reports of ncu that are kept."""


def keep(root: Path, content: bytes) -> None:
    """Put a report in JSON in the place of the one before.  Raises ``GpuperfError``."""
    target = root / FOLDER / FILE
    try:
        _make_folder(target.parent)
        write_whole(target, content)
    except OSError as problem:
        message = f"{target} cannot be written ({problem}): gpuperf explain will not know of this run"
        raise GpuperfError(message) from problem


def keep_ncu_reports(root: Path, evidence: Sequence[TestEvidence]) -> list[TestEvidence]:
    """Keep the reports of ncu that regressions are in, in place of those of earlier runs, as far as there is room.

    The evidence names them as seen from ``root``, and no others.  Raises ``GpuperfError`` if they cannot be written.
    """
    works = [work for one in evidence for work in one.workloads if work.ncu_report]
    red = [work for work in works if any(one.verdict.is_regression for one in work.judgements)]
    folder, kept, left = root / FOLDER, dict[str, str](), MOST_BYTES
    try:
        _make_folder(folder)
        for old in folder.glob(NCU_FILES):
            old.unlink()
        for path in map(Path, dict.fromkeys(work.ncu_report for work in red)):
            left -= path.stat().st_size
            if left >= 0:
                kept[str(path)] = f"{FOLDER}/{NCU_FILES.replace('*', str(len(kept) + 1))}"
                shutil.copyfile(path, root / kept[str(path)])
    except OSError as problem:
        raise GpuperfError(f"the reports of ncu cannot be kept in {folder} ({problem})") from problem
    return [_naming(kept, one) for one in evidence] if works else list(evidence)


def _naming(kept: dict[str, str], one: TestEvidence) -> TestEvidence:
    """With the new names of the reports that are kept, and without those of others."""
    return msgspec.structs.replace(one, workloads=tuple(
        msgspec.structs.replace(work, ncu_report=kept.get(work.ncu_report, "")) for work in one.workloads
    ))  # fmt: skip


def _make_folder(folder: Path) -> None:
    if folder.is_symlink():
        raise GpuperfError(f"{folder} is a link, and nothing is written through it: remove it")
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x") as ignore:
        ignore.write("*\n")


def find(start: Path) -> Path | None:
    """The last run of ``start`` or of the nearest folder above that has one, up to the top of its repository."""
    top = checkout_around(start)
    folders = (one for one in (start, *start.parents) if top is None or one.is_relative_to(top))
    return next((path for folder in folders if (path := folder / FOLDER / FILE).is_file()), None)
