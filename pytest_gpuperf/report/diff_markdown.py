"""A difference of baselines as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.report.diff_rows import ModuleDiff
from pytest_gpuperf.report.markdown import escaped

MOST_CHARACTERS = 60_000
"""GitHub takes no comment above 65,536."""
CUT_OFF = "The rest is cut off here: `gpuperf diff` prints all of it."


def diff_markdown(
    title: str, modules: Iterable[ModuleDiff], remarks: Sequence[str], summary: str, column: str = "workloads"
) -> str:
    """Title, count and remarks; then a table for each module, in which rows begin with the ``column``."""
    lines = [f"## {escaped(title)}", "", f"**{escaped(summary)}**", ""]
    lines += [f"* {escaped(remark)}" for remark in remarks]
    for module in modules:
        lines += [
            "",
            f"### {escaped(module.module)}",
            "",
            f"| kernel | {column} | target | change |",
            "|---|---|---|---|",
        ]
        for kernel in module.kernels:
            name = f"<code>{escaped(kernel.kernel)}</code>"
            for row in kernel.rows:
                cells = (escaped(row.workloads), escaped(row.targets), escaped(row.figures))
                lines.append(f"| {name} | {' | '.join(cells)} |")
                name = ""
    return _within_bounds([harmless(line) for line in lines])


def _within_bounds(lines: Sequence[str]) -> str:
    """As many whole lines as there is room for."""
    kept: list[str] = []
    left = MOST_CHARACTERS - len(CUT_OFF) - 2
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            kept += ["", CUT_OFF]
            break
        kept.append(line)
    return "\n".join(kept) + "\n"
