"""A run as Markdown: for the summary of a CI job, or a comment on the change that it ran for.

The worst comes first, and the first lines say it all: a comment that is cut off is still of use.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import harmless, numbered
from pytest_gpuperf.report.document import Document, Row
from pytest_gpuperf.report.tables import rank_of

MARKER = "<!-- pytest-gpuperf report -->"
"""The first line: by it a job finds the comment that it wrote before, to update it in place."""
MOST_CHARACTERS = 60_000
"""GitHub takes no comment above 65,536."""
LEAST_ALIKE = 3
"""Workloads that share a row and their words, where these differ in names and figures alone."""
NAMED = 20
"""Workloads of a group that are named."""
MOST_ROWS = 40
"""Of the first table."""
NO_NAME = "\N{WORD JOINER}"
"""Behind an ``@``, it keeps GitHub from calling the user whose name follows; nothing of it is seen."""
CUT_OFF = "The rest is too long for a comment: `gpuperf report` makes a page of the report in JSON, with all of it."


def as_markdown(document: Document) -> str:
    """Title, problems and machines; then what did not pass, with its words; then what passed, folded."""
    told = _groups(row for row in document.rows if not row.passes)
    passed = [row for row in document.rows if row.passes]
    parts = [
        f"{MARKER}\n## gpuperf: {document.title}", _origin(document),
        *(f"**{escaped(problem)}**" for problem in document.report.problems),
        _table(told) if told else "",
        "\n".join(f"* {escaped(text)}" for text in (*document.machines, *document.report.warnings)),
    ]  # fmt: skip
    parts += [_explained(group, unfolded=not place) for place, group in enumerate(told) if group[0].words]
    if passed:
        parts += [_folded(f"{numbered(len(passed), 'workload')} with nothing to tell", _passed(passed))]
    return _within_bounds([harmless(part) for part in parts if part])


def _origin(document: Document) -> str:
    report = document.report
    parts = [escaped(report.task)]
    if report.commit:
        of = f" of {escaped(report.branch)}" if report.branch else ""
        parts.append(f"commit `{report.commit[:12]}`{of}{', with changes' if report.dirty else ''}")
    return ", ".join([*parts, *map(escaped, report.toolchains)])


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows that are alike, where they are several; each led by the one that got worst, and in the order of these."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.verdict.value if row.verdict else "", row.alike or row.workload + row.test), []).append(
            row
        )
    groups = []
    for those in alike.values():
        those.sort(key=lambda row: -_ratio(row))
        groups += [those] if len(those) >= LEAST_ALIKE else [[row] for row in those]
    return sorted(groups, key=lambda group: (rank_of(group[0].verdict), -_ratio(group[0])))


def _ratio(row: Row) -> float:
    return row.figures.ratio if row.figures is not None and row.figures.ratio is not None else 1.0


def _within_bounds(parts: Sequence[str]) -> str:
    """One below the other, as far as there is room: a part that has none is left out, and said to be."""
    kept, left = [], MOST_CHARACTERS - len(CUT_OFF) - 2
    for part in parts:
        if len(part) + 2 > left:
            kept.append(CUT_OFF)
            break
        left -= len(part) + 2
        kept.append(part)
    return "\n\n".join(kept) + "\n"


def _explained(group: Sequence[Row], *, unfolded: bool) -> str:
    """The words of the worst of a group; those of the first regression stand open."""
    row = group[0]
    red = row.verdict is not None and row.verdict.is_regression
    more = f", and {len(group) - 1} more like it" if len(group) > 1 else ""
    words = _fenced(row.words)
    if len(group) > 1:
        names = [f"{one.workload} of {one.test}" for one in group[1 : NAMED + 1]]
        rest = len(group) - 1 - len(names)
        words += "\n\nThe same of " + escaped(", ".join(names)) + (f", and {rest} more" if rest else "") + "."
    return _folded(f"{row.workload} of {row.test}{more}", words, unfolded=red and (unfolded or len(group) == 1))


def _table(groups: Sequence[Sequence[Row]]) -> str:
    lines = ["| verdict | workload | time | against baseline | registers / spilled bytes / occupancy |",
             "|---|---|---|---|---|"]  # fmt: skip
    lines += [_line(group) for group in groups[:MOST_ROWS]]
    if len(groups) > MOST_ROWS:
        verdicts = Counter(group[0].verdict for group in groups[MOST_ROWS:] for _ in group)
        counts = ", ".join(f"{verdicts[one]} {one.value}" for one in sorted(verdicts, key=rank_of) if one)
        lines.append(f"| ... | and {counts} more | | | |")
    return "\n".join(lines)


def _line(group: Sequence[Row]) -> str:
    row = group[0]
    time = f"{row.before} → {row.time}" if row.before and row.time != "-" else row.time
    time = time if row.interval == "-" else f"{time} {row.interval}"
    verdict = "-" if row.verdict is None else row.verdict.value if row.passes else f"**{row.verdict.value}**"
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    name = f"<code>{escaped(row.workload)}</code><br>{escaped(row.test)}{more}"
    cells = [escaped(cell) for cell in (time, row.against, ", ".join(row.machine_code))]
    return f"| {verdict} | {name} | {' | '.join(cells)} |"


def _passed(rows: Sequence[Row]) -> str:
    """Each, or where they are many how many of a test function."""
    if len(rows) <= MOST_ROWS:
        return _table([[row] for row in rows])
    functions: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        word = row.verdict.value if row.verdict else "-"
        functions.setdefault((row.test.partition("[")[0], word), []).append(row)
    lines = ["| verdict | test | workloads |", "|---|---|---|"]
    lines += [f"| {word} | {escaped(test)} | {len(those)} |" for (test, word), those in functions.items()]
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
