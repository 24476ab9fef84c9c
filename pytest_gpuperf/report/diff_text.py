"""A difference of baselines as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.report.advice_lines import NO_BREAK, wrapped
from pytest_gpuperf.report.diff_rows import DiffRow, ModuleDiff


def diff_lines(modules: Iterable[ModuleDiff], remarks: Sequence[str], summary: str) -> list[str]:
    """Module, kernel and a line for each change; then what is of no kernel; the last line counts."""
    lines: list[str] = []
    for module in modules:
        lines.append(module.module)
        for kernel in module.kernels:
            lines.append(f"  {kernel.kernel}")
            lines += [line for row in kernel.rows for line in wrapped(_together(_words(row)), 4)]
        lines.append("")
    lines += [line for remark in remarks for line in wrapped(remark, 0)]
    return [*lines, summary]


def _words(row: DiffRow) -> str:
    """``64 workloads of test_scale[...] on sm_90: registers 40 -> 48``, or ``new: test_scale[8] [scale]``."""
    return f"{row.workloads} on {row.targets}: {row.figures}" if row.targets else f"{row.figures}: {row.workloads}"


def _together(text: str) -> str:
    """The text with both sides of each arrow on one line."""
    return text.replace(" -> ", f"{NO_BREAK}->{NO_BREAK}")
