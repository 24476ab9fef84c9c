"""``gpuperf diff``: what a reviewer wants to know of a change of the baselines, read from git."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.changed_records import difference
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.snapshots import AtRevision, OnDisk, Snapshot
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.judge.evidence_diff import compare_evidence
from pytest_gpuperf.report.diff_markdown import diff_markdown
from pytest_gpuperf.report.diff_rows import modules_of, remarks_of, summary_of
from pytest_gpuperf.report.diff_text import diff_lines

PROBLEMS = (BaselineError, NoFolderError)
"""What can keep the command from an answer."""
RULES = [metric.rule for metric in METRICS.values()]


def run(
    revisions: Sequence[str], *, given: Path | None, start: Path, markdown: bool, whole: bool,
    write: Callable[[str], object],
) -> int:  # fmt: skip
    """Say what differs between two states: of none ``HEAD`` and the working tree, of one it and the working tree.

    Returns the exit status: 0, also where something differs; 1 if a file could not be read, which is named.
    Raises one of ``PROBLEMS``.
    """
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
    diff = compare_evidence(changed.before, changed.after, RULES, elsewhere=changed.elsewhere)
    skipped = [f"not compared: {words}" for side in (before, after) for words in side.skipped.values()]
    manifests = _fields(changed.manifests[0]), _fields(changed.manifests[1])
    remarks = [*remarks_of(diff, manifests), *dict.fromkeys(skipped)]
    title = f"Baselines of {_shown(before)} -> {_shown(after)}"
    modules = modules_of(diff, whole=whole)
    if markdown:
        write(diff_markdown(title, modules, remarks, summary_of(diff)))
    else:
        write("\n".join([title, "", *diff_lines(modules, remarks, summary_of(diff))]) + "\n")
    return 1 if skipped else 0


def _shown(state: Snapshot) -> str:
    """Its name; of a commit's full id the beginning."""
    return state.name[:12] if re.fullmatch("[0-9a-f]{40,64}", state.name) else state.name


def _where(state: Snapshot) -> str:
    return f"at {state.name}" if isinstance(state, AtRevision) else f"in {state.name}"


def _fields(manifest: Manifest | None) -> dict[str, object]:
    return msgspec.structs.asdict(manifest) if manifest is not None else {}
