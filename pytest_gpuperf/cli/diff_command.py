"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.changed_records import any_compared, difference
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.renames import renamed_workloads
from pytest_gpuperf.baselines.snapshots import AtRevision, OnDisk, Snapshot
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
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
from pytest_gpuperf.report.files import NotWritten, write_file
from pytest_gpuperf.report.render import rendered

ENDINGS = (".html", ".md")


class DiffError(Exception):
    """There is no such form of a difference; the message says what to do."""


PROBLEMS = (BaselineError, NoFolderError, DiffError, NotWritten, OSError)
"""What can keep the command from an answer."""
RULES = list(METRICS.values())


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    revisions = [revision for revision in (parsed.before, parsed.after) if revision is not None]
    return run(
        revisions, given=parsed.baselines, start=Path.cwd(), markdown=parsed.markdown, files=parsed.files,
        write=write,
    )  # fmt: skip


def run(
    revisions: Sequence[str], *, given: Path | None, start: Path, markdown: bool,
    write: Callable[[str], object], files: Sequence[Path] = (),
) -> int:  # fmt: skip
    """Say what differs between two states: of none ``HEAD`` and the working tree, of one it and the working tree.

    Every one of ``files`` is written in the form of its ending; without any, ``write`` gets it as text or Markdown.
    Returns the exit status: 0, also where something differs; 1 if a file could not be read, which is named.
    Raises one of ``PROBLEMS``.
    """
    for file in files:
        _refuse_unknown(file)
    folder = given or folder_of(None, start)  # one that is given may be gone by now
    git = GitFolder(folder)
    with git.open() as reader:
        before = AtRevision(revisions[0] if revisions else "HEAD", git, reader)
        after = AtRevision(revisions[1], git, reader) if len(revisions) > 1 else OnDisk(folder, git.hash_name)
        if not any((before.ids, after.ids, before.skipped, after.skipped)):
            raise NoFolderError(
                f"there are no baselines in {folder}, neither at {before.name} nor {_where(after)}: name their folder "
                "with --baselines DIR"
            )
        changed = difference(before, after)
    renamed = renamed_workloads(changed.before, changed.after, changed.elsewhere)
    diff = compare_evidence(changed.before, changed.after, RULES, elsewhere=changed.elsewhere, renamed=renamed)
    skipped = [f"not compared: {words}" for side in (before, after) for words in side.skipped.values()]
    manifests = _fields(changed.manifests[0]), _fields(changed.manifests[1])
    remarks = [*edited_lines(changed.edited), *remarks_of(diff, manifests), *dict.fromkeys(skipped)]
    title = f"Baselines of {_shown(before)} -> {_shown(after)}"
    summary = summary_of(diff)
    if skipped and summary == NO_DIFFERENCE:
        compared = any_compared(before, after)
        summary = f"{NO_DIFFERENCE} in the files that were compared" if compared else "Nothing was compared"
    told = _Told(title, modules_of(diff), remarks, summary)
    for file in files:
        write_file("difference", file, _content(file, told).encode())
        write(f"difference written to {file}\n")
    if not files:
        write(diff_markdown(*told) if markdown else "\n".join([title, "", *diff_lines(*told[1:])]) + "\n")
    return 1 if skipped else 0


class _Told(NamedTuple):
    """What every form of a difference says."""

    title: str
    modules: Sequence[ModuleDiff]
    remarks: Sequence[str]
    summary: str


def _refuse_unknown(file: Path) -> None:
    if file.suffix not in ENDINGS:
        raise DiffError(f"{file} has none of the endings {', '.join(ENDINGS)}, by which a difference has its form")


def _content(file: Path, told: _Told) -> str:
    if file.suffix == ".md":
        return diff_markdown(*told)
    return rendered("diff.html", **told._asdict())


def _shown(state: Snapshot) -> str:
    """Its name; of a commit's full id the beginning."""
    return state.name[:12] if re.fullmatch("[0-9a-f]{40,64}", state.name) else state.name


def _where(state: Snapshot) -> str:
    return f"at {state.name}" if isinstance(state, AtRevision) else f"in {state.name}"


def _fields(manifest: Manifest | None) -> dict[str, object]:
    return msgspec.structs.asdict(manifest) if manifest is not None else {}
