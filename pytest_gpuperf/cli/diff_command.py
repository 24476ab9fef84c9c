"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.lookup import renamed_workloads
from pytest_gpuperf.baselines.store import Baselines, FolderFiles
from pytest_gpuperf.cli.baseline_folder import NoFolderError, add_folder, folder_of
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.diff import compare_evidence
from pytest_gpuperf.report.diff import (
    NO_DIFFERENCE,
    DiffRow,
    diff_lines,
    diff_markdown,
    entries_of,
    remarks_of,
    rows_of,
    summary_of,
)

NOT_COMPARED = "not compared: "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="REV", nargs="?", default="HEAD", help="what to compare with (default: HEAD)")
    parser.add_argument("after", metavar="REV", nargs="?", help="what is compared (default: the working tree)")
    parser.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Say what differs between two commits, or a commit and the working tree, as text or Markdown.

    Returns the exit status: 0, also where something differs; 1 if a file could not be read, which is named.
    Raises ``GpuperfError`` and ``OSError``.
    """
    folder = parsed.baselines or folder_of(None, Path.cwd())  # one that is given may be gone by now
    git = GitFolder(folder)
    before, after = _at_revision(git, parsed.before), Baselines(FolderFiles(folder), str(folder))
    if parsed.after is not None:
        after = _at_revision(git, parsed.after)
    after_name = parsed.after or "the working tree"
    if not before.files and not after.files:
        raise NoFolderError(
            f"there are no baselines in {folder}, neither at {parsed.before} nor in {after_name}: name their folder "
            "with --baselines DIR"
        )
    title = f"Baselines of {_shown(parsed.before)} -> {_shown(after_name)}"
    rows, remarks, summary = _difference(before, after)
    if parsed.markdown:
        write(diff_markdown(title, rows, remarks, summary))
    else:
        write("\n".join([title, "", *diff_lines(rows, remarks, summary)]) + "\n")
    return 1 if any(remark.startswith(NOT_COMPARED) for remark in remarks) else 0


def _at_revision(git: GitFolder, revision: str) -> Baselines:
    """Raises ``RevisionError``."""
    return Baselines(git.files(git.commit(revision)), f"{revision}:{git.inside}")


def _difference(before: Baselines, after: Baselines) -> tuple[list[DiffRow], list[str], str]:
    """What every form of a difference says: its rows, remarks and summary.

    A file that cannot be read is left out on both sides, and named.
    """
    places = sorted({*before.places(), *after.places()})
    unread: dict[tuple[str, str], str] = {}
    for place in places:
        try:
            before.load(*place)
            after.load(*place)
        except BaselineError as problem:
            unread[place] = _not_compared(problem)
    old, new = before.workloads(unread), after.workloads(unread)
    for key in [key for key, records in old.items() if new.get(key) == records]:
        del old[key], new[key]
    diff = compare_evidence(old, new, list(METRICS.values()), renamed=renamed_workloads(old, new))
    try:
        remarks = remarks_of((_manifest(before), _manifest(after)))
    except BaselineError as problem:
        remarks = [_not_compared(problem)]
    summary = summary_of(diff)
    if unread and summary == NO_DIFFERENCE:
        compared = len(unread) < len(places)
        summary = f"{NO_DIFFERENCE} in the files that were compared" if compared else "Nothing was compared"
    return rows_of(entries_of(diff)), [*unread.values(), *remarks], summary


def _not_compared(problem: BaselineError) -> str:
    return f"{NOT_COMPARED}{str(problem).splitlines()[0]}"


def _manifest(baselines: Baselines) -> dict[str, object]:
    """The fields of the manifest; none without one.  Raises ``BaselineError``."""
    content = baselines.files.get(manifest.FILE)
    found = None if content is None else manifest.decoded(content, f"{baselines.name}/{manifest.FILE}")
    return {} if found is None else msgspec.structs.asdict(found)


def _shown(name: str) -> str:
    """A revision; of a commit's full id the beginning."""
    return name[:12] if re.fullmatch("[0-9a-f]{40,64}", name) else name
