"""Failures as GitHub's annotations, at the line of their tests: ``::error file=...,line=...::...``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.formatting import visible
from pytest_gpuperf.options import GITHUB
from pytest_gpuperf.process.repository import checkout_around

MOST = 10
"""GitHub shows no more of one step."""
MOST_CHARACTERS = 2000


def error_lines(failed: Iterable[pytest.TestReport], reports: Sequence[str], root: Path) -> list[str]:
    """A line for each failure of the gate, where a job of GitHub asks for its report.

    Files are named as GitHub knows them, from the top of the checkout, which pytest's ``root`` may lie below.
    """
    if GITHUB not in reports or os.environ.get("GITHUB_ACTIONS") != "true":
        return []
    below = root.relative_to(checkout_around(root) or root)
    lines = []
    for report in failed:
        if getattr(report, "gpuperf_red", ""):
            path, line, name = report.location
            text = report.longreprtext[:MOST_CHARACTERS]
            file = Path(os.path.normpath(below / path)).as_posix()
            place = f"file={_property(file)},line={(line or 0) + 1},title={_property(name)}"
            lines.append(f"::error {place}::{_escaped(text)}")
    return lines[:MOST]


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
