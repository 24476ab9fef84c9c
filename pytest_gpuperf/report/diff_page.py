"""A difference of baselines as one HTML file that opens offline, by the extra ``html`` (Jinja2)."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.report.diff_rows import ModuleDiff
from pytest_gpuperf.report.page_parts import rendered

TEMPLATE = "diff.html"


def as_diff_page(title: str, modules: Sequence[ModuleDiff], remarks: Sequence[str], summary: str) -> str:
    """The whole file: title, count and remarks; then a table for each module."""
    return rendered(TEMPLATE, title=title, modules=modules, remarks=remarks, summary=summary)
