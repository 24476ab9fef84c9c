"""An audit in the rows of a difference (``diff_rows``): what got worse first, by file and kernel; the rest counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import first_of, indented_json, numbered, quantity
from pytest_gpuperf.judge.audit import Audit, Judged, KernelPlace, counts
from pytest_gpuperf.model.audited_kernel import AuditedKernel, Files
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict
from pytest_gpuperf.report.diff import LONGEST_TEXT, NAMED, DiffRow, KernelDiff, ModuleDiff
from pytest_gpuperf.report.folding import shortened

MOST_KERNELS = {Verdict.WORSE: 8, Verdict.BETTER: 3}
"""Of a file, by verdict, that have rows; ``--json`` has all of them."""
MORE = "--json FILE names them"
NO_TEST = "no test"
MOST_TESTS = 2
LONGEST_NAME = 98
"""Columns of a kernel's name, whose middle goes; ``--json`` has all of it."""
MOST_CHARACTERS = 8192
MOST_OTHERS = 3
"""Figures that do not gate, beside those that do."""

Names = Mapping[str, str]
"""Of kernels for people, by symbol."""
Tests = Mapping[str, Collection[str]]
"""Ids of the tests that have a kernel on record, by symbol; empty where no baselines are at hand."""


def modules_of(audit: Audit, names: Names, tests: Tests | None) -> list[ModuleDiff]:
    """Kernels that got worse or better; files that say the same of all of them are one."""
    by_file: dict[str, list[Judged]] = defaultdict(list)
    for one in audit.judged:
        if one.judgement.verdict in MOST_KERNELS:
            by_file[one.new.file].append(one)
    alike: dict[tuple[KernelDiff, ...], list[str]] = defaultdict(list)
    for file in sorted(by_file):
        alike[tuple(_kernels(by_file[file], names, tests))].append(quoted(file, LONGEST_TEXT))
    return [ModuleDiff(_first(files), kernels) for kernels, files in alike.items()]


def _kernels(judged: Iterable[Judged], names: Names, tests: Tests | None) -> list[KernelDiff]:
    by_verdict: dict[Verdict, dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for one in judged:
        by_verdict[one.judgement.verdict][one.new.symbol].append(one)
    found = []
    for verdict, most in MOST_KERNELS.items():
        order = sorted(by_verdict[verdict].items(), key=lambda item: (-max(map(_weight, item[1])), item[0]))
        for symbol, several in order[:most]:
            rows = _rows(verdict, several, _test_words(symbol, tests) if verdict is Verdict.WORSE else "")
            found.append(KernelDiff(_short(names[symbol]), tuple(rows)))
        rest = len(order) - most
        if rest > 0:
            found.append(KernelDiff(f"{numbered(rest, 'kernel')} more", (DiffRow(MORE, "", verdict.value),)))
    return found


def _rows(verdict: Verdict, several: Iterable[Judged], tests: str) -> list[DiffRow]:
    """One for each distinct change of what gates, with its architectures and the words of the first of them."""
    alike: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in sorted(several, key=lambda one: arch_order(one.new.arch)):
        alike[tuple(_gating(one.judgement.changes))].append(one)
    return [
        DiffRow(
            verdict.value, ", ".join(dict.fromkeys(one.new.arch for one in those)), _words(those[0].judgement) + tests
        )
        for those in alike.values()
    ]


def _gating(changes: Iterable[Change]) -> list[str]:
    """What gates in a change; of instructions whether there are any, since every architecture has its own count."""
    return [
        change.what if change.what.startswith("instructions") else str(change)
        for change in changes
        if change.direction != "neutral"
    ]


def _words(judgement: Judgement) -> str:
    """What gates, then the rest behind ``also``."""
    gating = [str(change) for change in judgement.changes if change.direction != "neutral"]
    others = [str(change) for change in judgement.changes if change.direction == "neutral"]
    also = f"also {first_of(others, MOST_OTHERS, ',')}" if others else ""
    return "; ".join(filter(None, (", ".join(gating), also, *judgement.notes)))


def _weight(one: Judged) -> float:
    """How much stack was added, then how much occupancy was lost: sorts kernels and says nothing else."""
    differences = {change.what: change for change in one.judgement.changes}
    stack, occupancy = differences.get("stack frame"), differences.get("occupancy")
    grown = float(stack.after) - float(stack.before) if stack is not None else 0.0
    lost = float(occupancy.before) - float(occupancy.after) if occupancy is not None else 0.0
    return 1000 * grown + lost


def _test_words(symbol: str, tests: Tests | None) -> str:
    if tests is None:
        return ""
    covering = sorted(tests.get(symbol, ()))
    if not covering:
        return f"; {NO_TEST}"
    return f"; tests: {first_of([quoted(one) for one in covering], MOST_TESTS)}"


def remarks_of(audit: Audit, names: Names) -> list[str]:
    """What came, went and was renamed, kernels of all architectures as one."""
    renamed = dict.fromkeys((names[old.symbol], names[new.symbol]) for old, new in audit.renamed)
    moved = [f"{_short(old)} -> {_short(new)}" for old, new in renamed if old != new]
    lines = list(audit.whole)
    lines += [_listed("renamed, with equal code", moved)] if moved else []
    for word, places in (("new", audit.new), ("gone", audit.gone)):
        distinct = list(dict.fromkeys(_short(names[place.symbol]) for place in places))
        lines += [_listed(word, distinct)] if distinct else []
    return lines


def _first(names: Sequence[str]) -> str:
    """``a.so and 3 alike``"""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} alike"


def _short(name: str) -> str:
    return shortened(quoted(name, MOST_CHARACTERS), LONGEST_NAME)


def _listed(word: str, names: Sequence[str]) -> str:
    return f"{numbered(len(names), 'kernel')} {word}: {first_of(names, NAMED)}"


def summary_of(audit: Audit) -> str:
    """``2 WORSE, 1 BETTER, 40 SAME, 477 UNCHANGED``"""
    found = [f"{count} {verdict.value}" for verdict, count in counts(audit).items()]
    return ", ".join(found) or "no kernel was there before"


def contents_of(group: str, files: Files) -> list[str]:
    """A line for each architecture of each file: how many kernels, how large, with how much stack."""
    lines = []
    for file in sorted(files):
        lines.append(quoted(file if len(files) > 1 or file == group else f"{group}: {file}", LONGEST_TEXT))
        by_arch: dict[str, list[AuditedKernel]] = defaultdict(list)
        for archs in files[file].values():
            for arch, several in archs.items():
                by_arch[arch] += several
        lines += [f"  {_content(arch, by_arch[arch])}" for arch in sorted(by_arch, key=arch_order)]
    return lines


def _content(arch: str, kernels: Sequence[AuditedKernel]) -> str:
    stack = [one.stack_bytes for one in kernels if one.stack_bytes]
    framed = f"{len(stack)} with a stack frame, up to {max(stack)} bytes" if stack else "none with a stack frame"
    size = quantity(sum(one.code_bytes for one in kernels), "B")
    registers = max((one.registers for one in kernels), default=0)
    return f"{arch}: {numbered(len(kernels), 'kernel')}, {size} of code, up to {registers} registers, {framed}"


def as_json(audit: Audit, names: Names, tests: Tests | None, problems: Sequence[str]) -> bytes:
    """All that a program may want to know: what differs with its figures, the rest as counts."""

    def named(place: KernelPlace) -> dict[str, str]:
        return {"file": place.file, "arch": place.arch, "symbol": place.symbol, "name": names[place.symbol]}

    changed = [one for one in audit.judged if one.judgement.verdict is not Verdict.UNCHANGED]
    document = {
        "schema": 1,
        "counts": {verdict.value: count for verdict, count in counts(audit).items()},
        "problems": list(problems),
        "changed": [
            {
                **named(one.new), "verdict": one.judgement.verdict.value, "changes": one.judgement.changes,
                "notes": one.judgement.notes,
                **({} if tests is None else {"tests": sorted(tests.get(one.new.symbol, ()))}),
            }
            for one in changed
        ],
        "renamed": [{"was": old.symbol, **named(new)} for old, new in audit.renamed],
        "new": [named(place) for place in audit.new],
        "gone": [named(place) for place in audit.gone],
        "whole": audit.whole,
    }  # fmt: skip
    return indented_json(document)
