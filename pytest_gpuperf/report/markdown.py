"""A run as Markdown: for the summary of a CI job, or a comment on the change that it ran for.

The worst comes first, and the first lines say it all: a comment that is cut off is still of use.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import escape_ci_commands, first_of, numbered
from pytest_gpuperf.report.document import Document, Row
from pytest_gpuperf.report.order import counted, rank_of, shortened

MARKER = "<!-- pytest-gpuperf report -->"
"""The first line: by it a job finds the comment that it wrote before, to update it in place."""
MOST_CHARACTERS = 60_000
"""GitHub takes no comment above 65,536."""
LEAST_ALIKE = 3
"""Workloads that share a row and their words, where these differ in names and figures alone."""
NAMED = 12
"""Workloads of a group that are named."""
MOST_ROWS = 40
"""Of the tables of workloads that did not pass, and of those that did."""
LONGEST_NAME = 80
"""Characters of a name in a table."""
NO_NAME = "\N{WORD JOINER}"
"""Behind an ``@``, it keeps GitHub from calling the user whose name follows; nothing of it is seen."""
_BLOCK = re.compile(r"^(\d*)([-+=#.)])(?=[-+=#\s])")
"""How a list, a heading or a line across begins, where a line does."""
CUT_OFF = "The rest is too long for a comment: `gpuperf report` makes a page of the report in JSON, with all of it."


def as_markdown(document: Document) -> str:
    """Title and problems; the worst workload with its words; all that did not pass; then the others."""
    report, timed = document.report, document.timed
    groups = _groups(row for row in document.rows if not row.passes)
    passed = [[row] for row in document.rows if row.passes]
    explained = [_explained(group, unfolded=not place) for place, group in enumerate(groups) if group[0].lines]
    origin = [escaped(report.task)]
    if report.commit:
        of = f" of {escaped(report.branch)}" if report.branch else ""
        origin.append(f"commit `{report.commit[:12]}`{of}{', with changes' if report.dirty else ''}")
    parts = [
        f"{MARKER}\n## gpuperf: {document.headline}", ", ".join([*origin, *map(escaped, report.toolchains)]),
        *(f"**{escaped(problem)}**" for problem in report.problems),
        *explained[:1], _table(groups, timed=timed),
        "\n".join(f"* {escaped(text)}" for text in (*report.machines, *report.warnings)), *explained[1:],
        _folded(f"{numbered(len(passed), 'workload')} passed", _table(passed, timed=timed)) if passed else "",
    ]  # fmt: skip
    return within_bounds((escape_ci_commands(part) for part in parts if part), "\n\n", CUT_OFF)


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows that are alike, where they are several; each led by the one that got worst, and in the order of these."""
    alike: dict[tuple[object, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: -(row.ratio or 1.0)):
        alike.setdefault((row.verdict, row.alike or row.name), []).append(row)
    groups: list[list[Row]] = []
    for those in alike.values():
        groups += [those] if len(those) >= LEAST_ALIKE else [[row] for row in those]
    return sorted(groups, key=lambda group: (rank_of(group[0].verdict), -(group[0].ratio or 1.0)))


def within_bounds(parts: Iterable[str], joint: str, cut_off: str) -> str:
    """The parts that fit, one below the other; ``cut_off`` replaces the first that does not, and the rest."""
    kept, left = [], MOST_CHARACTERS - len(cut_off) - 2
    for part in parts:
        left -= len(part) + len(joint)
        if left < 0:
            kept.append(cut_off)
            break
        kept.append(part)
    return joint.join(kept) + "\n"


def _explained(group: Sequence[Row], *, unfolded: bool) -> str:
    """The words of the worst of a group; those of the first regression stand open."""
    row, *others = group
    title, text = shortened(row.name, 2 * LONGEST_NAME), _fenced(row.lines)
    if others:
        title += f", and {len(others)} more like it"
        names = first_of([shortened(one.name, 2 * LONGEST_NAME) for one in others], NAMED, ",")
        text += f"\n\nThe same holds for {escaped(names)}."
    red = row.verdict is not None and row.verdict.is_regression
    return _folded(title, text, unfolded=red and (unfolded or not others))


def _table(groups: Sequence[Sequence[Row]], *, timed: bool) -> str:
    """A row for each group, and of many the rest by their verdicts; empty without groups."""
    if not groups:
        return ""
    names = ["verdict", "workload", *(["time", "against baseline"] if timed else []),
             "registers / spilled bytes / occupancy"]  # fmt: skip
    rows = [_cells(group, timed=timed) for group in groups[:MOST_ROWS]]
    if len(groups) > MOST_ROWS:
        counts = counted(row.verdict for group in groups[MOST_ROWS:] for row in group)
        rows.append(["...", f"and {counts} more", *[""] * (len(names) - 2)])
    return "\n".join(table_lines(names, rows))


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, of cells that are ``escaped``."""
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(cells)} |" for cells in rows)]


def _cells(group: Sequence[Row], *, timed: bool) -> list[str]:
    row, verdict, key = group[0], group[0].verdict, group[0].evidence.key
    shown = "-" if verdict is None else verdict.value if row.passes else f"**{verdict.value}**"
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    workload, test = (escaped(shortened(name, LONGEST_NAME)) for name in (key.workload, key.node_id))
    code = "; ".join(filter(None, [", ".join(row.machine_code), _worse_code(row)]))
    figures = (row.time.time, row.time.against, code) if timed else (code,)
    return [shown, f"<code>{workload}</code><br>{test}{more}", *map(escaped, figures)]


def _worse_code(row: Row) -> str:
    """The first figure of its machine code that got worse: ``stack frame 0 -> 256 bytes``; empty without one."""
    changes = (change for one in row.evidence.judgements if one.kind == "static" for change in one.changes)
    return next((str(change) for change in changes if change.direction == "worse"), "")


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
    one_line = re.sub(r"\s*[\r\n]+\s*", " ", plain).strip()
    return _BLOCK.sub(r"\1\\\2", one_line) or "-"
