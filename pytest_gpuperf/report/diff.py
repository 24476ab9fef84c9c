"""The difference of two states of baselines, or of two builds, for a reader: by file and kernel, the worst first.

Equal changes of several workloads are one row, as text or as Markdown.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.layout import arch_order, target_order
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.formatting import duration, escape_ci_commands, first_of, numbered, percent
from pytest_gpuperf.judge.diff import EvidenceDiff, TargetDiff
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.markdown import escaped, table_lines, within_bounds
from pytest_gpuperf.report.message import NO_BREAK, wrapped
from pytest_gpuperf.report.order import shortened

NAMED = 3
"""Workloads that a row names; of more it says how many."""
MOST_FIGURES = 8
"""Figures in a row."""
LONGEST_TEXT = 200
"""Characters of one name or figure: both come out of files that may be anybody's."""
LONGEST_KERNEL = 98
"""Columns of the name of a built kernel, whose middle goes."""
MOST_CHARACTERS = 8192
"""And the part of such a name before it."""
CUT_OFF = "The rest is cut off here: `gpuperf diff` prints all of it."


class Difference(NamedTuple):
    """A difference of one kernel on one target."""

    module: str
    kernel: str
    of: Key | str
    """The workload, or a verdict."""
    target: str
    """An architecture or a GPU model; empty for all."""
    text: str
    alike: str
    """Entries of a kernel that have this in common are one row."""


class DiffRow(NamedTuple):
    """One change of a kernel in a test module or a built file, and its workloads."""

    module: str
    kernel: str
    workloads: str
    targets: str
    figures: str


def rows_of(entries: Iterable[Difference]) -> list[DiffRow]:
    """A row for each distinct change of a kernel, with its targets and workloads.

    Modules, and the kernels of a module, stand in the order of their first entries.
    """
    kernels: dict[str, dict[str, dict[tuple[Key | str, str], list[Difference]]]] = {}
    for one in entries:
        changes = kernels.setdefault(one.module, {}).setdefault(one.kernel, {})
        changes.setdefault((one.of, one.alike), []).append(one)
    found = []
    for module, by_kernel in kernels.items():
        for kernel, changes in by_kernel.items():
            alike: dict[tuple[str, str], list[Difference]] = defaultdict(list)
            for (_, text), those in changes.items():
                targets = sorted({one.target for one in those}, key=arch_order)
                alike[", ".join(map(quoted, targets)), text].append(those[0])
            for (names, _), those in alike.items():
                workloads = names_of([one.of for one in those if isinstance(one.of, Key)]) or str(those[0].of)
                place = quoted(module, LONGEST_TEXT), quoted(kernel, LONGEST_TEXT)
                found.append(DiffRow(*place, workloads, names, those[0].text))
    return found


# --- baselines -------------------------------------------------------------------------------------


def entries_of(diff: EvidenceDiff) -> Iterator[Difference]:
    """Changes of baselines, the worst workload first; new and removed workloads stand behind the changed kernels."""
    for one in sorted(diff.workloads, key=lambda one: one.severity, reverse=True):
        targets = sorted(one.targets, key=lambda target: target_order(target.target))
        changes = [(target.target, _text(target)) for target in targets]
        if one.was is not None:
            test = one.was.test.partition("[")[0]
            changes.append(("", f"moved from {quoted(f'{one.was.module}::{test}', LONGEST_TEXT)}"))
        for target, text in changes:
            yield Difference(one.key.module, one.kernel or "callables", one.key, target, text, text)
    for text, keys in (("new", diff.new), ("removed", diff.removed)):
        for key in keys:
            yield Difference(key.module, "workloads", key, "", text, text)


def _text(diff: TargetDiff) -> str:
    """``6.64 us -> 9.96 us (+50.0 %), DRAM bytes read 4096 -> 8192 bytes (+100.00 %)``, and how many more there are."""
    parts = [str(change) for change in diff.changes]
    if diff.times_ns is not None:
        before, after = map(duration, diff.times_ns)
        parts.insert(0, f"{before} -> {after} ({percent(diff.ratio - 1)})")
    elif all(change.what == "compiler" for change in diff.changes):
        parts.append("machine code changed, its figures did not")
    return _listed(parts)


def _listed(texts: Sequence[str]) -> str:
    """The first few, and how many more."""
    return first_of([quoted(one, LONGEST_TEXT) for one in texts], MOST_FIGURES, ",")


def names_of(keys: Sequence[Key]) -> str:
    """``test_scale[8] [scale]``; of many ``64 workloads of test_scale[...], 2 of test_other``."""
    if len(keys) <= NAMED:
        return ", ".join(quoted(f"{key.test} [{key.workload}]", LONGEST_TEXT) for key in keys)
    tests: dict[str, int] = defaultdict(int)
    for key in keys:
        name, parameters, _ = key.test.partition("[")
        tests[f"{name}{'[...]' if parameters else ''}"] += 1
    shown = [f"{count} of {quoted(name, LONGEST_TEXT)}" for name, count in list(tests.items())[:NAMED]]
    rest = len(keys) - sum(list(tests.values())[:NAMED])
    return f"{', '.join(shown).replace(' of ', ' workloads of ', 1)}{f' and {rest} of others' if rest else ''}"


def remarks_of(*manifests: Manifest | None) -> list[str]:
    """Targets and toolchains that came or went, from the manifest before to the one after."""
    before, after = ({} if one is None else msgspec.structs.asdict(one) for one in manifests)
    return [
        f"manifest: {name.replace('_', ' ')}: {was} -> {now}"
        for name in sorted(before.keys() | after.keys())
        if (was := _shown(before.get(name))) != (now := _shown(after.get(name)))
    ]


def _shown(field: object) -> str:
    texts = [str(one) for one in field] if isinstance(field, (list, tuple, dict)) else [str(field)] if field else []
    return _listed(texts) or "none"


def summary_of(diff: EvidenceDiff) -> str:
    """``3 kernels changed, 2 workloads new, 1 workload removed``"""
    changed = {(one.key.module, one.kernel) for one in diff.workloads if one.kernel and one.targets}
    callables = sum(not one.kernel and bool(one.targets) for one in diff.workloads)
    moved = sum(one.was is not None for one in diff.workloads)
    parts = [
        f"{numbered(count, noun)} changed"
        for count, noun in ((len(changed), "kernel"), (callables, "callable"))
        if count
    ]
    counts = [(len(diff.new), "new"), (len(diff.removed), "removed"), (moved, "moved")]
    parts += [f"{numbered(count, 'workload')} {word}" for count, word in counts if count]
    return ", ".join(parts) or "No figure differs"


# --- builds ----------------------------------------------------------------------------------------


def built_entries(judgements: Iterable[Judgement], names: Mapping[str, str]) -> Iterator[Difference]:
    """Kernels of built files that got worse or better, the worst first; ``names`` are theirs for people, by symbol.

    A row has the words of its first architecture: each has its own count of instructions.
    """
    for one in sorted(judgements, key=_rank):
        if one.verdict not in (Verdict.WORSE, Verdict.BETTER):
            continue
        gating = [change for change in one.changes if change.direction != "neutral"]
        others = [change for change in one.changes if change.direction == "neutral"]
        also = f"; also {first_of(others, NAMED, ',')}" if others else ""
        alike = [change.what if change.what.startswith("instructions") else str(change) for change in gating]
        yield Difference(
            one.key.module, short_name(names[one.key.workload]), one.verdict.value, one.target,
            ", ".join(map(str, gating)) + also, f"{one.verdict.value} {alike}",
        )  # fmt: skip


def _rank(one: Judgement) -> tuple[bool, float, str, str, tuple[int, str]]:
    """Sort key, the worst first: added stack, then lost occupancy."""
    grown = {change.what: float(change.after) - float(change.before) for change in one.changes}
    weight = 1000 * grown.get("stack frame", 0.0) - grown.get("occupancy", 0.0)
    return one.verdict is not Verdict.WORSE, -weight, one.key.module, one.key.workload, arch_order(one.target)


def short_name(name: str) -> str:
    """The name of a built kernel in a line."""
    return shortened(quoted(name, MOST_CHARACTERS), LONGEST_KERNEL)


def listed(word: str, names: Iterable[str]) -> list[str]:
    """``3 kernels new: a, b, c``, in a list; an empty one without any."""
    distinct = list(dict.fromkeys(names))
    return [f"{numbered(len(distinct), 'kernel')} {word}: {first_of(distinct, NAMED)}"] if distinct else []


# --- forms -----------------------------------------------------------------------------------------


def diff_lines(rows: Iterable[DiffRow], remarks: Sequence[str], summary: str) -> list[str]:
    """Module, kernel and a line for each change; then the remarks; the last line counts."""
    lines: list[str] = []
    for module, of_module in itertools.groupby(rows, lambda row: row.module):
        lines.append(module)
        for kernel, those in itertools.groupby(of_module, lambda row: row.kernel):
            lines.append(f"  {kernel}")
            for row in those:
                on = f" on {row.targets}" if row.targets else ""
                text = f"{row.workloads}{on}: {row.figures}".replace(" -> ", f"{NO_BREAK}->{NO_BREAK}")
                lines += wrapped(text, 4)  # both sides of an arrow on one line
        lines.append("")
    return [*lines, *(line for remark in remarks for line in wrapped(remark, 0)), summary]


def diff_markdown(
    title: str, rows: Iterable[DiffRow], remarks: Sequence[str], summary: str, column: str = "workloads"
) -> str:
    """Title, count and remarks; then a table for each module, in which rows begin with the ``column``."""
    lines = [f"## {escaped(title)}", "", f"**{escaped(summary)}**", "", *(f"* {escaped(one)}" for one in remarks)]
    for module, of_module in itertools.groupby(rows, lambda row: row.module):
        lines += ["", f"### {escaped(module)}", ""]
        cells, last = [], ""
        for row in of_module:
            name = "" if row.kernel == last else f"<code>{escaped(row.kernel)}</code>"
            cells.append([name, escaped(row.workloads), escaped(row.targets), escaped(row.figures)])
            last = row.kernel
        lines += table_lines(("kernel", column, "target", "change"), cells)
    return within_bounds(map(escape_ci_commands, lines), "\n", f"\n{CUT_OFF}")
