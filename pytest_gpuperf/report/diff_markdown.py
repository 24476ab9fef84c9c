"""A difference of baselines as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.report.diff_rows import ModuleDiff
from pytest_gpuperf.report.markdown import escaped, within_bounds

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
    return within_bounds(map(harmless, lines), "\n", f"\n{CUT_OFF}")
