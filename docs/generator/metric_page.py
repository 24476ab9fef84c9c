"""docs/reference/metrics.md: sets of counters, and metrics with their bands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from source_text import NOTE, table

from pytest_gpuperf.counters.catalogue import METRICS, NAMES, SETS
from pytest_gpuperf.counters.sections import SECTIONS, SectionRow
from pytest_gpuperf.judge.counters import Metric

HEAD = f"""\
# Metrics

Names and bands of the [counters](../how-to/counters.md). {NOTE}

- [Sets](#sets)
- [Counters](#counters)
- [Tables](#tables)

## Sets

What `--gpuperf-ncu=` takes by one word.
"""
COUNTERS = """\
## Counters

Those of GH100, with their suffixes. Where another chip calls a metric otherwise, the plugin translates both ways
(`dram__bytes_read` is `dram__bytes_op_read` on GB20x). Where it has none, the metric is left out with a note. A test
holds the table against the metric lists of {chips}.

A class says how a metric is compared, and a band how far it may move. *Shown only* is what is neither good nor bad by
itself. Metrics that begin with `memory_l1_` and `profiler__` are made by ncu itself.
"""
STALL_REASONS = "REASON is one of {reasons}."
NOT_LISTED = """\
`l1tex__data_bank_conflicts…` is not in the list: it counts arbitration with other accesses too, and is above zero for
code without any conflict.
"""
TABLES = """\
## Tables

Rows of `gpuperf explain --details` and of the HTML report, as Nsight Compute names them, and the metrics that they are
of. Each stall has a row as well, in cycles per issued instruction.
"""
STALLS = re.findall(r"issue_stalled_(\w+)_per_issue_active", " ".join(METRICS))


def page() -> str:
    """The whole page."""
    sets = table(["set", "metrics"], [[f"`{name}`", str(len(metrics))] for name, metrics in SETS.items()])
    counters = table(["metric", "what", "unit", "class"], _once(_row(metric) for metric in METRICS.values()))
    reasons = STALL_REASONS.format(reasons=", ".join(f"`{reason}`" for reason in STALLS))
    *chips, last = NAMES
    about = COUNTERS.format(chips=f"{', '.join(chips)} and {last}")
    rows = [[name, row.what, row.unit, _formula(row)] for name, some in SECTIONS.items() for row in some]
    tables = table(["table", "row", "unit", "of"], [row for row in rows if not row[1].startswith("Stall")])
    return "\n".join([HEAD, sets, "", about, counters, "", reasons, "", NOT_LISTED, TABLES, tables, ""])


def _formula(row: SectionRow) -> str:
    """``100 - 100 x metric``, ``metric / other``."""
    amount, less, per = (" + ".join(f"`{name}`" for name in names) for names in (row.sum, row.less, row.per))
    text = f"{amount} - {less}" if less else amount
    text = text if row.scale == 1 else f"{abs(row.scale):g} x {text}"
    text = f"{row.base:g} {'-' if row.scale < 0 else '+'} {text}" if row.base else text
    return f"{text} / ({per})" if len(row.per) > 1 else f"{text} / {per}" if per else text


def _row(metric: Metric) -> list[str]:
    band = f", {metric.tolerance * 100:g} %" if metric.tolerance else ""
    shown = ", shown only" if metric.klass != "informational" and metric.better == "neutral" else ""
    return [f"`{_general(metric.name)}`", _general(metric.what), metric.unit, f"{metric.klass}{band}{shown}"]


def _general(text: str) -> str:
    """With REASON in the place of the stall that a metric is about."""
    for reason in sorted(STALLS, key=len, reverse=True):
        text = text.replace(f"_{reason}_per", "_REASON_per")
        text = text.replace(f": {reason.replace('_', ' ')}", ": REASON")
    return text


def _once(rows: Iterable[list[str]]) -> list[list[str]]:
    return list({row[0]: row for row in rows}.values())
