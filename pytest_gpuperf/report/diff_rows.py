"""What differs between two states of the baselines, put in order for a reader: by module and kernel, the worst first.

Equal changes of several workloads are one row.  ``diff_text`` and ``diff_markdown`` write the rows down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import duration, numbered, percent
from pytest_gpuperf.judge.diff import EvidenceDiff, RunDiff, WorkloadDiff
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Change

NAMED = 3
"""Workloads that a row names; of more it says how many."""
MOST_FIGURES = 8
"""Figures of machine code in a row."""
MOST_COUNTERS = 3
MOST_CONDITIONS = 6
MOST_TIMED = 5
"""Rows on times of one kernel on one GPU model; the rest is one more."""
LONGEST_TEXT = 200
"""Characters of one name or figure: both come out of files that may be anybody's."""
NO_DIFFERENCE = "No figure differs"
NO_KERNEL = "callables"
"""Heading of what launches no kernel that the plugin knows."""
NO_FIGURE = "machine code changed, no figure of it"


class DiffRow(NamedTuple):
    """One change, and whose it is."""

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


class _Group:
    """What is known of one kernel in one module."""

    def __init__(self) -> None:
        self.changed: list[WorkloadDiff] = []
        self.new: list[Key] = []
        self.gone: list[Key] = []

    @property
    def severity(self) -> tuple[float, int]:
        return max((one.severity for one in self.changed), default=(0.0, 0))


def modules_of(diff: EvidenceDiff, *, whole: bool = False) -> list[ModuleDiff]:
    """All rows; those on times of many workloads are shortened unless the ``whole`` is asked for."""
    by_compiler = len({one.toolchain for workload in diff.workloads for one in workload.code}) > 1
    modules = _grouped(diff)
    order = sorted(modules, key=lambda name: max(one.severity for one in modules[name].values()), reverse=True)
    return [
        ModuleDiff(quoted(module, LONGEST_TEXT), tuple(_kernels(modules[module], by_compiler, whole=whole)))
        for module in order
    ]


def _kernels(groups: Mapping[str, _Group], by_compiler: bool, *, whole: bool) -> Iterator[KernelDiff]:
    """Those that changed, the worst first; those that came or went behind them, many of them as one."""
    changed = {kernel: group for kernel, group in groups.items() if group.changed}
    others = {kernel: group for kernel, group in groups.items() if not group.changed}
    if len(others) > NAMED:
        whole_group = _Group()
        for group in others.values():
            whole_group.new += group.new
            whole_group.gone += group.gone
        others = {f"{len(others)} {'other ' if changed else ''}kernels": whole_group}
    by_severity = sorted(changed.items(), key=lambda item: item[1].severity, reverse=True)
    for kernel, group in (*by_severity, *others.items()):
        yield KernelDiff(quoted(kernel, LONGEST_TEXT) or NO_KERNEL, tuple(_rows(group, by_compiler, whole=whole)))


def _grouped(diff: EvidenceDiff) -> Mapping[str, Mapping[str, _Group]]:
    """By module and kernel, each sorted by name."""
    groups: dict[tuple[str, str], _Group] = defaultdict(_Group)
    for one in diff.workloads:
        groups[one.key.module, one.kernel].changed.append(one)
    for key, kernel in diff.new.items():
        groups[key.module, kernel].new.append(key)
    for key, kernel in diff.gone.items():
        groups[key.module, kernel].gone.append(key)
    modules: dict[str, dict[str, _Group]] = defaultdict(dict)
    for module, kernel in sorted(groups):
        modules[module][kernel] = groups[module, kernel]
    return modules


def _rows(group: _Group, by_compiler: bool, *, whole: bool) -> list[DiffRow]:
    rows = _code_rows(group.changed, by_compiler) + _run_rows(group.changed, whole=whole) + _moved_rows(group.changed)
    rows += [DiffRow(names_of(group.new), "", "new")] if group.new else []
    return rows + ([DiffRow(names_of(group.gone), "", "gone")] if group.gone else [])


# --- machine code --------------------------------------------------------------------------------


def _code_rows(changed: Iterable[WorkloadDiff], by_compiler: bool) -> list[DiffRow]:
    """One for each distinct change, with its architectures and workloads."""
    alike: dict[tuple[str, tuple[str, ...]], list[Key]] = defaultdict(list)
    for workload in changed:
        targets: dict[str, list[str]] = defaultdict(list)
        for one in sorted(workload.code, key=lambda one: arch_order(one.arch)):
            target = f"{one.arch} by {one.toolchain}" if by_compiler else one.arch
            figures = [change for change in one.changes if change.what != "compiler"]
            compiler = [change for change in one.changes if change.what == "compiler"]
            words = _listed([*compiler, *figures, *([] if figures else [NO_FIGURE])], MOST_FIGURES)
            targets[words].append(quoted(target))
        for words, those in targets.items():
            alike[words, tuple(those)].append(workload.key)
    return [DiffRow(names_of(keys), ", ".join(targets), words) for (words, targets), keys in alike.items()]


def _listed(words: Sequence[str | Change], most: int, rest: str = "") -> str:
    """The first few, and how many more."""
    shown = [quoted(str(one), LONGEST_TEXT) for one in words[:most]]
    if len(words) > most:
        shown.append(f"and {len(words) - most} more{rest}")
    return ", ".join(shown)


# --- time and counters ---------------------------------------------------------------------------


def _run_rows(changed: Iterable[WorkloadDiff], *, whole: bool) -> list[DiffRow]:
    """One for each distinct change on each GPU model, the slowest first; of many the rest is one row."""
    by_gpu: dict[str, dict[str, list[tuple[RunDiff, Key]]]] = defaultdict(lambda: defaultdict(list))
    for workload in changed:
        for run in workload.runs:
            by_gpu[run.gpu][run_words(run)].append((run, workload.key))
    rows = []
    for gpu in sorted(by_gpu):
        alike = sorted(by_gpu[gpu].items(), key=lambda item: -item[1][0][0].ratio)
        shown = len(alike) if whole or len(alike) <= MOST_TIMED + 1 else MOST_TIMED
        rows += [DiffRow(names_of([key for _, key in those]), quoted(gpu), words) for words, those in alike[:shown]]
        rest = [one for _, those in alike[shown:] for one in those]
        if rest:
            changes = sorted(run.ratio - 1 for run, _ in rest)
            words = f"{percent(changes[0])} to {percent(changes[-1])} (--all names them)"
            rows.append(DiffRow(f"{len(rest)} more", quoted(gpu), words))
    return rows


def run_words(run: RunDiff) -> str:
    """``6.64 us -> 9.96 us (+50.0 %), DRAM bytes read 4096 -> 8192 bytes (+100.00 %), and 3 more counters``."""
    parts = []
    if run.times_ns is not None:
        parts.append(f"{duration(run.times_ns[0])} -> {duration(run.times_ns[1])} ({percent(run.ratio - 1)})")
    parts += [_listed(run.conditions, MOST_CONDITIONS)] if run.conditions else []
    if run.counters:
        parts.append(_listed(run.counters, MOST_COUNTERS, " counters"))
    return ", ".join(parts)


# --- names ---------------------------------------------------------------------------------------


def _moved_rows(changed: Iterable[WorkloadDiff]) -> list[DiffRow]:
    """One for each renamed test."""
    alike: dict[tuple[str, str, str], list[tuple[Key, Key]]] = defaultdict(list)
    for one in changed:
        if one.was is not None:
            alike[one.was.module, _base(one.was), _base(one.key)].append((one.was, one.key))
    rows = []
    for (module, old, new), pairs in alike.items():
        was, now = pairs[0]
        if len(pairs) == 1:
            old, new = _short(was), _short(now)
        if module != now.module:
            old, new = f"{module}::{old}", f"{now.module}::{new}"
        names = f"{quoted(old, LONGEST_TEXT)} -> {quoted(new, LONGEST_TEXT)}"
        rows.append(DiffRow(f"{names} ({len(pairs)} workloads)" if len(pairs) > 1 else names, "", "moved"))
    return rows


def names_of(keys: Sequence[Key]) -> str:
    """``test_scale[8] [scale]``; of many ``64 workloads of test_scale[...], 2 of test_other``."""
    if len(keys) <= NAMED:
        return ", ".join(quoted(_short(key), LONGEST_TEXT) for key in keys)
    tests: dict[str, int] = defaultdict(int)
    for key in keys:
        tests[_base(key) + ("[...]" if "[" in key.test else "")] += 1
    first, *others = [(quoted(name, LONGEST_TEXT), count) for name, count in tests.items()]
    words = [f"{first[1]} workloads of {first[0]}" if first[1] > 1 else f"1 workload of {first[0]}"]
    words += [f"{count} of {name}" for name, count in others[: NAMED - 1]]
    rest = sum(count for _, count in others[NAMED - 1 :])
    return ", ".join(words) + (f" and {rest} of others" if rest else "")


def _short(key: Key) -> str:
    return f"{key.test} [{key.workload}]"


def _base(key: Key) -> str:
    return key.test.partition("[")[0]


# --- what is not of one kernel -------------------------------------------------------------------


def remarks_of(diff: EvidenceDiff, manifests: tuple[Mapping[str, object], Mapping[str, object]]) -> list[str]:
    """Targets and toolchains that came or went, and what else differs; ``manifests``: fields before and after."""
    lines = []
    for one, workloads in diff.coverage.items():
        target = quoted(f"{one.target} by {one.toolchain}" if one.toolchain else one.target, LONGEST_TEXT)
        lines.append(f"{target} {'added' if one.added else 'removed'}: records of {numbered(workloads, 'workload')}")
    before, after = manifests
    for name in sorted(before.keys() | after.keys()):
        words = _field_words(before.get(name), after.get(name))
        lines += [f"manifest: {name.replace('_', ' ')}: {words}"] if words else []
    if diff.unseen:
        lines.append(
            f"{numbered(diff.unseen, 'workload', 'differs', 'differ')} in nothing that is compared (hashes of sources "
            "and cubins, counters within their bands)"
        )
    return lines


def _field_words(before: object, after: object) -> str:
    """Of lists what was added and removed, of anything else both values; empty if they are equal."""
    if isinstance(before or after, (list, tuple)):
        old, new = ([str(one) for one in side] if isinstance(side, (list, tuple)) else [] for side in (before, after))
        changes = [f"{one} added" for one in new if one not in old] + [
            f"{one} removed" for one in old if one not in new
        ]
        return _listed(changes, MOST_FIGURES)
    old_text, new_text = ("none" if side is None else quoted(str(side)) for side in (before, after))
    return f"{old_text} -> {new_text}" if before != after else ""


def summary_of(diff: EvidenceDiff) -> str:
    """``3 kernels changed, 2 workloads new, 1 gone``"""
    changed = {(one.key.module, one.kernel) for one in diff.workloads if one.kernel and (one.code or one.runs)}
    callables = sum(not one.kernel and bool(one.runs) for one in diff.workloads)
    moved = sum(one.was is not None for one in diff.workloads)
    parts = [f"{numbered(len(changed), 'kernel')} changed"] if changed else []
    parts += [f"{numbered(callables, 'callable')} changed"] if callables else []
    listed = [(len(diff.new), "new"), (len(diff.gone), "gone"), (moved, "moved")]
    counts = [(count, word) for count, word in listed if count]
    parts += [f"{numbered(count, 'workload') if at == 0 else count} {word}" for at, (count, word) in enumerate(counts)]
    return ", ".join(parts) or NO_DIFFERENCE
