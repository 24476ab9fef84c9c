"""A run as Markdown: for the summary of a CI job, or a comment on the change that it ran for."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.report.document import Document, Row

MOST_BYTES = 900_000
"""GitHub takes no step's summary above 1 MiB."""
NO_NAME = "\N{WORD JOINER}"
"""Behind an ``@``, it keeps GitHub from calling the user whose name follows; nothing of it is seen."""


def as_markdown(document: Document) -> str:
    """Title, problems and machines; then what did not pass, with its words; then what passed, folded."""
    told = [row for row in document.rows if not row.passes]
    passed = [row for row in document.rows if row.passes]
    parts = [
        f"## gpuperf: {document.title}", escaped(document.report.task),
        *(f"**{escaped(problem)}**" for problem in document.report.problems),
        "\n".join(f"* {escaped(text)}" for text in (*document.machines, *document.report.warnings)),
        _table(told) if told else "",
    ]  # fmt: skip
    parts += [_explained(row) for row in told if row.words]
    if passed:
        title = f"{numbered(len(passed), 'workload')} with nothing to tell"
        parts += [_folded(title, _table(passed))]
    return _within_bounds([part for part in parts if part])


def _within_bounds(parts: Sequence[str]) -> str:
    """One below the other, as far as there is room."""
    kept, left = [], MOST_BYTES
    for part in parts:
        left -= len(part.encode()) + 2
        if left < 0:
            kept.append("The rest is too long for this summary: it is in pytest's own output.")
            break
        kept.append(part)
    return "\n\n".join(kept) + "\n"


def _explained(row: Row) -> str:
    """The words of one workload; those of a regression stand open."""
    red = row.verdict is not None and row.verdict.is_regression
    return _folded(f"{row.workload} of {row.test}", _fenced(row.words), unfolded=red)


def _table(rows: Sequence[Row]) -> str:
    lines = ["| verdict | workload | time | against baseline | registers / spilled bytes / occupancy |",
             "|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        time = row.time if row.interval == "-" else f"{row.time} {row.interval}"
        verdict = "-" if row.verdict is None else row.verdict.value if row.passes else f"**{row.verdict.value}**"
        name = f"<code>{escaped(row.workload)}</code><br>{escaped(row.test)}"
        cells = [escaped(cell) for cell in (time, row.against, ", ".join(row.machine_code))]
        lines.append(f"| {verdict} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _folded(title: str, text: str, *, unfolded: bool = False) -> str:
    """A section to unfold.  Up to the first empty line it is HTML, where Markdown's own markup means nothing."""
    summary = f"<summary>{html.escape(' '.join(title.split()))}</summary>"
    return f"<details{' open' if unfolded else ''}>\n{summary}\n\n{text}\n\n</details>"


def _fenced(lines: Sequence[str]) -> str:
    """The lines as they are, behind a fence longer than any in them."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def escaped(text: str) -> str:
    """The text escaped, so that no name is taken for markup, ends its cell, or calls a user of GitHub (``@name``)."""
    plain = re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(text, quote=False)).replace("@", f"@{NO_NAME}")
    return re.sub(r"\s*[\r\n]+\s*", " ", plain) or "-"
