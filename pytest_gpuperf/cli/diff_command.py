"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.history import difference
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.renames import renamed_workloads
from pytest_gpuperf.baselines.store import Baselines, FolderFiles
from pytest_gpuperf.cli.baseline_folder import NoFolderError, add_folder, folder_of
from pytest_gpuperf.cli.report_command import add_output, refuse_other_endings
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.diff import compare_evidence
from pytest_gpuperf.report.diff import (
    NO_DIFFERENCE,
    ModuleDiff,
    diff_lines,
    diff_markdown,
    entries_of,
    modules_of,
    remarks_of,
    summary_of,
)
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
    before = _at_revision(git, parsed.before)
    if parsed.after is None:
        after, after_name = Baselines(FolderFiles(folder), str(folder)), "the working tree"
    else:
        after, after_name = _at_revision(git, parsed.after), parsed.after
    if not before.files and not after.files:
        where = f"at {after_name}" if parsed.after else f"in {after_name}"
        raise NoFolderError(
            f"there are no baselines in {folder}, neither at {parsed.before} nor {where}: name their folder with "
            "--baselines DIR"
        )
    told, skipped = _difference(before, after, f"Baselines of {_shown(parsed.before)} -> {_shown(after_name)}")
    for file in parsed.files:
        write_file("difference", file, _content(file, told).encode())
        write(f"difference written to {file}\n")
    if not parsed.files:
        write(diff_markdown(*told) if parsed.markdown else "\n".join([told.title, "", *diff_lines(*told[1:])]) + "\n")
    return 1 if skipped else 0


def _at_revision(git: GitFolder, revision: str) -> Baselines:
    """Raises ``RevisionError``."""
    return Baselines(git.files(git.commit(revision)), f"{revision}:{git.inside}")


def _difference(before: Baselines, after: Baselines, title: str) -> tuple[_Told, bool]:
    """What to say, and whether a file could not be read."""
    changed = difference(before, after)
    renamed = renamed_workloads(changed.before, changed.after, changed.elsewhere)
    diff = compare_evidence(
        changed.before, changed.after, list(METRICS.values()), elsewhere=changed.elsewhere, renamed=renamed
    )
    skipped = [f"not compared: {words}" for words in changed.skipped]
    manifests = _fields(changed.manifests[0]), _fields(changed.manifests[1])
    summary = summary_of(diff)
    if skipped and summary == NO_DIFFERENCE:
        summary = f"{NO_DIFFERENCE} in the files that were compared" if changed.compared else "Nothing was compared"
    return _Told(title, modules_of(entries_of(diff)), [*remarks_of(manifests), *skipped], summary), bool(skipped)


def _content(file: Path, told: _Told) -> str:
    if file.suffix == ".md":
        return diff_markdown(*told)
    return rendered("diff.html", **told._asdict())


def _shown(name: str) -> str:
    """A revision; of a commit's full id the beginning."""
    return name[:12] if re.fullmatch("[0-9a-f]{40,64}", name) else name


def _fields(manifest: Manifest | None) -> dict[str, object]:
    return msgspec.structs.asdict(manifest) if manifest is not None else {}
