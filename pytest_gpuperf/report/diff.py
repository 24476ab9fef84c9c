"""The difference of two states of the baselines for a reader: by module and kernel, the worst first.

Equal changes of several workloads are one row.  The rows become text or Markdown here, and a page by a template.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import duration, harmless, numbered, percent
from pytest_gpuperf.judge.diff import EvidenceDiff, RunDiff, WorkloadDiff
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.report.markdown import escaped, within_bounds
from pytest_gpuperf.report.message import NO_BREAK, wrapped

NAMED = 3
"""Workloads that a row names; of more it says how many."""
MOST_FIGURES = 8
"""Figures of machine code in a row."""
MOST_COUNTERS = 3
MOST_CONDITIONS = 6
LONGEST_TEXT = 200
"""Characters of one name or figure: both come out of files that may be anybody's."""
NO_DIFFERENCE = "No figure differs"
NO_KERNEL = "callables"
"""Heading of callables, which have no kernel that the plugin knows."""
NO_FIGURE = "machine code changed, no figure of it"
CUT_OFF = "The rest is cut off here: `gpuperf diff` prints all of it."


class DiffRow(NamedTuple):
    """One change, and its workloads."""

    workloads: str
    targets: str
    """Architectures or a GPU model; empty for all."""
    figures: str


class KernelDiff(NamedTuple):
    """The changes of one kernel in one test module."""

    kernel: str
    rows: tuple[DiffRow, ...]


class ModuleDiff(NamedTuple):
    """The changes of one test module."""

    module: str
    kernels: tuple[KernelDiff, ...]


def modules_of(diff: EvidenceDiff) -> list[ModuleDiff]:
    """All rows, the worst module and kernel first; new and removed workloads of a module stand behind its kernels."""
    changed: dict[str, dict[str, list[WorkloadDiff]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(diff.workloads, key=lambda one: one.severity, reverse=True):
        changed[one.key.module][one.kernel].append(one)
    others: dict[str, list[DiffRow]] = defaultdict(list)
    for word, keys in (("new", diff.new), ("gone", diff.gone)):
        by_module: dict[str, list[Key]] = defaultdict(list)
        for key in keys:
            by_module[key.module].append(key)
        for module, those in by_module.items():
            others[module].append(DiffRow(names_of(those), "", word))
    found = []
    for module in dict.fromkeys((*changed, *others)):
        kernels = [
            KernelDiff(quoted(kernel, LONGEST_TEXT) or NO_KERNEL, tuple(_rows(those)))
            for kernel, those in changed[module].items()
        ]
        kernels += [KernelDiff("workloads", tuple(others[module]))] if module in others else []
        found.append(ModuleDiff(quoted(module, LONGEST_TEXT), tuple(kernels)))
    return found


def _rows(changed: Iterable[WorkloadDiff]) -> list[DiffRow]:
    """One for each distinct change of a kernel, with its targets and workloads."""
    alike: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for workload in changed:
        archs: dict[str, list[str]] = defaultdict(list)
        for one in sorted(workload.code, key=lambda one: arch_order(one.arch)):
            named = all(change.what == "compiler" for change in one.changes)
            archs[_listed([*one.changes, *([NO_FIGURE] if named else [])], MOST_FIGURES)].append(quoted(one.arch))
        changes = [(", ".join(those), words) for words, those in archs.items()]
        changes += [(quoted(run.gpu), run_words(run)) for run in workload.runs]
        if workload.was is not None:
            test = workload.was.test.partition("[")[0]
            changes.append(("", f"moved from {quoted(f'{workload.was.module}::{test}', LONGEST_TEXT)}"))
        for change in changes:
            alike[change].append(workload.key)
    return [DiffRow(names_of(keys), targets, words) for (targets, words), keys in alike.items()]


def run_words(run: RunDiff) -> str:
    """``6.64 us -> 9.96 us (+50.0 %), DRAM bytes read 4096 -> 8192 bytes (+100.00 %), and 3 more counters``."""
    parts = []
    if run.times_ns is not None:
        parts.append(f"{duration(run.times_ns[0])} -> {duration(run.times_ns[1])} ({percent(run.ratio - 1)})")
    parts += [_listed(run.conditions, MOST_CONDITIONS)] if run.conditions else []
    parts += [_listed(run.counters, MOST_COUNTERS, " counters")] if run.counters else []
    return ", ".join(parts)


def _listed(words: Sequence[str | Change], most: int, rest: str = "") -> str:
    """The first few, and how many more."""
    shown = [quoted(str(one), LONGEST_TEXT) for one in words[:most]]
    if len(words) > most:
        shown.append(f"and {len(words) - most} more{rest}")
    return ", ".join(shown)


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


def remarks_of(manifests: tuple[Mapping[str, object], Mapping[str, object]]) -> list[str]:
    """Targets and toolchains that came or went; ``manifests``: their fields before and after."""
    lines = []
    before, after = manifests
    for name in sorted(before.keys() | after.keys()):
        words = _field_words(before.get(name), after.get(name))
        lines += [f"manifest: {name.replace('_', ' ')}: {words}"] if words else []
    return lines


def _field_words(before: object, after: object) -> str:
    """Of lists the entries added and removed, of anything else both values; empty if they are equal."""
    if isinstance(before or after, (list, tuple)):
        old, new = ([str(one) for one in side] if isinstance(side, (list, tuple)) else [] for side in (before, after))
        added = [f"{one} added" for one in new if one not in old]
        return _listed([*added, *(f"{one} removed" for one in old if one not in new)], MOST_FIGURES)
    old_text, new_text = ("none" if side is None else quoted(str(side)) for side in (before, after))
    return f"{old_text} -> {new_text}" if before != after else ""


def summary_of(diff: EvidenceDiff) -> str:
    """``3 kernels changed, 2 workloads new, 1 gone``"""
    changed = {(one.key.module, one.kernel) for one in diff.workloads if one.kernel and (one.code or one.runs)}
    callables = sum(not one.kernel and bool(one.runs) for one in diff.workloads)
    moved = sum(one.was is not None for one in diff.workloads)
    parts = [f"{numbered(len(changed), 'kernel')} changed"] if changed else []
    parts += [f"{numbered(callables, 'callable')} changed"] if callables else []
    counts = [(count, word) for count, word in ((len(diff.new), "new"), (len(diff.gone), "gone"), (moved, "moved"))]
    counts = [one for one in counts if one[0]]
    parts += [f"{numbered(count, 'workload') if at == 0 else count} {word}" for at, (count, word) in enumerate(counts)]
    return ", ".join(parts) or NO_DIFFERENCE


def diff_lines(modules: Iterable[ModuleDiff], remarks: Sequence[str], summary: str) -> list[str]:
    """Module, kernel and a line for each change; then the remarks; the last line counts."""
    lines: list[str] = []
    for module in modules:
        lines.append(module.module)
        for kernel in module.kernels:
            lines.append(f"  {kernel.kernel}")
            for row in kernel.rows:
                on = f" on {row.targets}" if row.targets else ""
                words = f"{row.workloads}{on}: {row.figures}".replace(" -> ", f"{NO_BREAK}->{NO_BREAK}")
                lines += wrapped(words, 4)  # both sides of an arrow on one line
        lines.append("")
    return [*lines, *(line for remark in remarks for line in wrapped(remark, 0)), summary]


def diff_markdown(
    title: str, modules: Iterable[ModuleDiff], remarks: Sequence[str], summary: str, column: str = "workloads"
) -> str:
    """Title, count and remarks; then a table for each module, in which rows begin with the ``column``."""
    lines = [f"## {escaped(title)}", "", f"**{escaped(summary)}**", ""]
    lines += [f"* {escaped(remark)}" for remark in remarks]
    for module in modules:
        heads = f"| kernel | {column} | target | change |"
        lines += ["", f"### {escaped(module.module)}", "", heads, "|---|---|---|---|"]
        for kernel in module.kernels:
            name = f"<code>{escaped(kernel.kernel)}</code>"
            for row in kernel.rows:
                cells = (escaped(row.workloads), escaped(row.targets), escaped(row.figures))
                lines.append(f"| {name} | {' | '.join(cells)} |")
                name = ""
    return within_bounds(map(harmless, lines), "\n", f"\n{CUT_OFF}")
