"""Annotations of a change on GitHub: the message of a regression at the line of its cause, else at that of its test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_gpuperf.formatting import visible
from pytest_gpuperf.report.document import Row

WORKSPACE = "GITHUB_WORKSPACE"
"""Names the folder that a job has checked out: annotations name files as seen from there."""
MOST = 10
"""GitHub shows no more errors of one step."""


def annotations_of(rows: Iterable[Row], tests: Mapping[str, tuple[str, int]], root: Path, level: str) -> list[str]:
    """Workflow commands, the worst first, one for each line of a file.

    ``tests`` has file and line of those that failed, by node id; files are as seen from ``root``.  ``level`` is
    ``error`` or ``warning``.
    """
    found: dict[tuple[str, int], str] = {}
    for row in rows:
        key, verdict = row.evidence.key, row.verdict
        if verdict is None or not verdict.is_regression:
            continue
        causes = [(one.file, one.line) for one in row.evidence.advice if one.line]
        file, line = next(iter(causes), tests.get(key.node_id, (key.module, 1)))
        path = os.path.relpath(root / file, os.environ.get(WORKSPACE) or Path.cwd())
        title = f"gpuperf: {key.workload} {verdict.value}"
        places = f"file={_property(path)},line={line},title={_property(title)}"
        found.setdefault((file, line), f"::{level} {places}::{_data(chr(10).join(row.lines))}")
    return list(found.values())[:MOST]


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
