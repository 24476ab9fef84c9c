"""Reports that are files: which form each has, and writing them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import indented_json
from pytest_gpuperf.options import GITHUB
from pytest_gpuperf.report.document import Document
from pytest_gpuperf.report.markdown import as_markdown

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Names the file that GitHub shows as the summary of a job; outside of one it is not set."""


def write_report(document: Document, target: str, root: Path = Path()) -> str:
    """Write one report in the form that its ending asks for; returns where it went, empty if there is no such place.

    ``root`` is that of pytest, from where the document names files.
    A file takes the place of an older one whole; to the summary of a GitHub job it is appended, since steps share it.
    Raises ``GpuperfError``.
    """
    place = os.environ.get(SUMMARY_VARIABLE, "") if target == GITHUB else target
    path = Path(place)
    try:
        if target != GITHUB:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, _content(document, path, root))
        elif place:
            with path.open("a", encoding="utf-8") as summary:
                summary.write(as_markdown(document))
    except OSError as problem:
        why = problem.strerror or problem
        raise GpuperfError(f"the report {path} could not be written ({why}): name another file") from problem
    return place


def write_reports(document: Document, targets: Sequence[str], root: Path = Path()) -> tuple[list[str], list[str]]:
    """Write all of them, even if one fails; returns the written places, and the errors of the others."""
    written, problems = [], []
    for target in targets:
        try:
            written.append(write_report(document, target, root))
        except GpuperfError as problem:
            problems.append(str(problem))
    return [place for place in written if place], problems


def _content(document: Document, path: Path, root: Path) -> bytes:
    if path.suffix == ".json":
        return indented_json(document.report)
    if path.suffix == ".html":
        from pytest_gpuperf.report.render import as_page  # noqa: PLC0415 Jinja is slow to import

        return as_page(document, os.path.relpath(root, path.parent)).encode()
    return as_markdown(document).encode()
