"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.history import difference
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.store import Baselines, FolderFiles
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.diff import compare_evidence
from pytest_gpuperf.report.diff_markdown import diff_markdown
from pytest_gpuperf.report.diff_rows import NO_DIFFERENCE, ModuleDiff, modules_of, remarks_of, summary_of
from pytest_gpuperf.report.diff_text import diff_lines
from pytest_gpuperf.report.files import NotWritten, write_file

ENDINGS = (".html", ".md")


class DiffError(Exception):
    """There is no such form of a difference; the message says what to do."""


PROBLEMS = (BaselineError, NoFolderError, DiffError, NotWritten, OSError)
"""What can keep the command from an answer."""
RULES = list(METRICS.values())


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    revisions = [revision for revision in (parsed.before, parsed.after) if revision is not None]
    return run(
        revisions, given=parsed.baselines, start=Path.cwd(), markdown=parsed.markdown, whole=parsed.all,
        files=parsed.files, write=write,
    )  # fmt: skip


def run(
    revisions: Sequence[str], *, given: Path | None, start: Path, markdown: bool, whole: bool,
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
    before = _at_revision(git, revisions[0] if revisions else "HEAD")
    after = _at_revision(git, revisions[1]) if len(revisions) > 1 else Baselines(FolderFiles(folder), str(folder))
    names = revisions[0] if revisions else "HEAD", revisions[1] if len(revisions) > 1 else "the working tree"
    if not before.files and not after.files:
        raise NoFolderError(
            f"there are no baselines in {folder}, neither at {names[0]} nor {'in' if len(revisions) < 2 else 'at'} "
            f"{names[1]}: name their folder with --baselines DIR"
        )
    changed = difference(before, after)
    diff = compare_evidence(changed.before, changed.after, RULES, elsewhere=changed.elsewhere)
    skipped = [f"not compared: {words}" for words in changed.skipped]
    manifests = _fields(changed.manifests[0]), _fields(changed.manifests[1])
    remarks = [*remarks_of(diff, manifests), *skipped]
    title = f"Baselines of {_shown(names[0])} -> {_shown(names[1])}"
    summary = summary_of(diff)
    if skipped and summary == NO_DIFFERENCE:
        summary = f"{NO_DIFFERENCE} in the files that were compared" if changed.compared else "Nothing was compared"
    told = _Told(title, modules_of(diff, whole=whole), remarks, summary)
    for file in files:
        write_file("difference", file, _content(file, told).encode())
        write(f"difference written to {file}\n")
    if not files:
        write(diff_markdown(*told) if markdown else "\n".join([title, "", *diff_lines(*told[1:])]) + "\n")
    return 1 if skipped else 0


def _at_revision(git: GitFolder, revision: str) -> Baselines:
    """Raises ``RevisionError``."""
    return Baselines(git.files(git.commit(revision)), f"{revision}:{git.inside}")


class _Told(NamedTuple):
    """What every form of a difference says."""

    title: str
    modules: Sequence[ModuleDiff]
    remarks: Sequence[str]
    summary: str


def _refuse_unknown(file: Path) -> None:
    if file.suffix not in ENDINGS:
        raise DiffError(f"{file} has none of the endings {', '.join(ENDINGS)}, by which a difference has its form")
    if file.suffix == ".html" and importlib.util.find_spec("jinja2") is None:
        raise DiffError(f"{file} needs jinja2: pip install 'pytest-gpuperf[html]', or name a .md file")


def _content(file: Path, told: _Told) -> str:
    if file.suffix == ".md":
        return diff_markdown(*told)
    from pytest_gpuperf.report.page_parts import rendered  # noqa: PLC0415 Jinja is an extra

    return rendered("diff.html", **told._asdict())


def _shown(name: str) -> str:
    """A revision; of a commit's full id the beginning."""
    return name[:12] if re.fullmatch("[0-9a-f]{40,64}", name) else name


def _fields(manifest: Manifest | None) -> dict[str, object]:
    return msgspec.structs.asdict(manifest) if manifest is not None else {}
