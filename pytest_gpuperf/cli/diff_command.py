"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.changed_records import any_compared, difference
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.renames import renamed_workloads
from pytest_gpuperf.baselines.snapshots import AtRevision, OnDisk, Snapshot
from pytest_gpuperf.cli.baseline_folder import NoFolderError, add_folder, folder_of
from pytest_gpuperf.cli.report_command import add_output, refuse_other_endings
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.diff import compare_evidence
from pytest_gpuperf.report.diff import (
    NO_DIFFERENCE,
    ModuleDiff,
    diff_lines,
    diff_markdown,
    edited_lines,
    modules_of,
    remarks_of,
    summary_of,
)  # fmt: skip
from pytest_gpuperf.report.files import write_file
from pytest_gpuperf.report.render import rendered

ENDINGS = (".html", ".md")


class _Told(NamedTuple):
    """What every form of a difference says."""

    title: str
    modules: Sequence[ModuleDiff]
    remarks: Sequence[str]
    summary: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="REV", nargs="?", default="HEAD", help="what to compare with (default: HEAD)")
    parser.add_argument("after", metavar="REV", nargs="?", help="what is compared (default: the working tree)")
    parser.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")
    add_output(parser, "a file that ends in .html or .md; may be given again (default: text to the terminal)")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Say what differs between two commits, or a commit and the working tree, in every form that is asked for.

    Returns the exit status: 0, also where something differs; 1 if a file could not be read, which is named.
    Raises ``GpuperfError`` and ``OSError``.
    """
    refuse_other_endings(parsed.files, ENDINGS)
    folder = parsed.baselines or folder_of(None, Path.cwd())  # one that is given may be gone by now
    git = GitFolder(folder)
    with git.open() as reader:
        before = AtRevision(parsed.before, git, reader)
        after = OnDisk(folder, git.hash_name) if parsed.after is None else AtRevision(parsed.after, git, reader)
        told, skipped = _difference(before, after, folder)
    for file in parsed.files:
        write_file("difference", file, _content(file, told).encode())
        write(f"difference written to {file}\n")
    if not parsed.files:
        write(diff_markdown(*told) if parsed.markdown else "\n".join([told.title, "", *diff_lines(*told[1:])]) + "\n")
    return 1 if skipped else 0


def _difference(before: Snapshot, after: Snapshot, folder: Path) -> tuple[_Told, bool]:
    """What to say, and whether a file could not be read.  Raises ``NoFolderError`` if neither has any baselines."""
    if not any((before.ids, after.ids, before.skipped, after.skipped)):
        where = f"at {after.name}" if isinstance(after, AtRevision) else f"in {after.name}"
        raise NoFolderError(
            f"there are no baselines in {folder}, neither at {before.name} nor {where}: name their folder with "
            "--baselines DIR"
        )
    changed = difference(before, after)
    renamed = renamed_workloads(changed.before, changed.after, changed.elsewhere)
    diff = compare_evidence(
        changed.before, changed.after, list(METRICS.values()), elsewhere=changed.elsewhere, renamed=renamed
    )
    skipped = [f"not compared: {words}" for side in (before, after) for words in side.skipped.values()]
    manifests = _fields(changed.manifests[0]), _fields(changed.manifests[1])
    remarks = [*edited_lines(changed.edited), *remarks_of(diff, manifests), *dict.fromkeys(skipped)]
    summary = summary_of(diff)
    if skipped and summary == NO_DIFFERENCE:
        compared = any_compared(before, after)
        summary = f"{NO_DIFFERENCE} in the files that were compared" if compared else "Nothing was compared"
    title = f"Baselines of {_shown(before)} -> {_shown(after)}"
    return _Told(title, modules_of(diff), remarks, summary), bool(skipped)


def _content(file: Path, told: _Told) -> str:
    if file.suffix == ".md":
        return diff_markdown(*told)
    return rendered("diff.html", **told._asdict())


def _shown(state: Snapshot) -> str:
    """Its name; of a commit's full id the beginning."""
    return state.name[:12] if re.fullmatch("[0-9a-f]{40,64}", state.name) else state.name


def _fields(manifest: Manifest | None) -> dict[str, object]:
    return msgspec.structs.asdict(manifest) if manifest is not None else {}
