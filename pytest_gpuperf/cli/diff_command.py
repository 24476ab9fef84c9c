"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.lookup import renamed_workloads
from pytest_gpuperf.baselines.store import Baselines, BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.judge.diff import compare_evidence
from pytest_gpuperf.report.diff import diff_lines, diff_markdown, entries_of, remarks_of, rows_of, summary_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="REV", nargs="?", default="HEAD", help="what to compare with (default: HEAD)")
    parser.add_argument("after", metavar="REV", nargs="?", help="what is compared (default: the working tree)")
    parser.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Say what differs between two commits, or a commit and the working tree, as text or Markdown.

    Returns the exit status: 0, also where something differs.  Raises ``GpuperfError`` and ``OSError``.
    """
    folder = parsed.baselines or folder_of(None, Path.cwd())  # one that is given may be missing by now
    git = GitFolder(folder)
    before = _at_revision(git, parsed.before)
    after = BaselineStore(folder) if parsed.after is None else _at_revision(git, parsed.after)
    after_name = parsed.after or "the working tree"
    old, new = before.workloads(), after.workloads()
    if not old and not new:
        raise GpuperfError(
            f"there are no baselines in {folder}, neither at {parsed.before} nor in {after_name}: name their folder "
            "with --baselines DIR"
        )
    for key in [key for key, records in old.items() if new.get(key) == records]:
        del old[key], new[key]
    diff = compare_evidence(old, new, list(METRICS.values()), renamed=renamed_workloads(old, new))
    rows, summary = rows_of(entries_of(diff)), summary_of(diff)
    remarks = remarks_of(before.manifest(), after.manifest())
    title = f"Baselines of {parsed.before} -> {after_name}"
    if parsed.markdown:
        write(diff_markdown(title, rows, remarks, summary))
    else:
        write("\n".join([title, "", *diff_lines(rows, remarks, summary)]) + "\n")
    return 0


def _at_revision(git: GitFolder, revision: str) -> Baselines:
    """Raises ``RevisionError``."""
    return Baselines(git.files(git.commit(revision)), f"{revision}:{git.inside}")
