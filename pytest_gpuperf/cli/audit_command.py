"""``gpuperf audit``: the static gate for a file that is already built, against another build of it."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.machine_code.audited import AuditedKernel, group_of, read_built, with_instructions_of
from pytest_gpuperf.compile.machine_code.symbols import kernel_key, library_name
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.diff import built_entries, diff_lines, diff_markdown, listed, rows_of, short_name
from pytest_gpuperf.report.order import counted, rank_of

EXIT_REGRESSED, EXIT_UNKNOWN = 1, 2
PROBLEM_STATUS = EXIT_UNKNOWN
MOST_BYTES = 4 << 20
"""Of machine code that is disassembled: 5 s on a core."""
NOTHING_COMPARED = (
    "nothing was compared: no kernel is on both sides, and a gate without a comparison would always be green. Name the "
    "other build of this file\n"
)
Kernels = list[AuditedKernel]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a .whl, .so, .o, .a, .fatbin or .cubin")
    parser.add_argument(
        "--against", metavar="FILE", type=Path, required=True, help="another build of it, such as the version before"
    )
    parser.add_argument(
        "--skip", metavar="PATTERN", action="append", default=[],
        help="files in a wheel that are left out: '*/libvendored*.so'; may be given again",
    )  # fmt: skip
    parser.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Read both files, and print what differs.

    Returns the exit status: 0, 1 if a kernel got worse, or 2 if a file cannot be read or no kernel could be compared.
    Raises ``GpuperfError`` and ``OSError``.
    """
    unread: list[str] = []
    sides: list[Kernels] = []
    with TemporaryDirectory(prefix="gpuperf-audit-") as scratch:
        for side in ("against", "file"):
            folder = Path(scratch, side)
            folder.mkdir()
            kernels, problems = read_built(getattr(parsed, side), folder, parsed.skip)
            sides.append([one._replace(file=one.file or group_of(parsed.file)) for one in kernels])
            unread += problems
        found = compared(*sides)
    write(_as_text(found, markdown=parsed.markdown))
    if unread:
        summary = f"{numbered(len(unread), 'file')} cannot be read and judged: --skip PATTERN leaves files out"
        write("".join(f"{line}\n" for line in (*unread, summary)))
        return EXIT_UNKNOWN
    if not found.pairs:
        write(NOTHING_COMPARED)
        return EXIT_UNKNOWN
    return EXIT_REGRESSED if Verdict.WORSE in found.verdicts else 0


# --- comparing -----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """One kernel of both builds."""

    old: AuditedKernel
    new: AuditedKernel
    judgement: Judgement

    @property
    def code_bytes(self) -> int:
        return self.old.record.profile.code_bytes + self.new.record.profile.code_bytes


class AuditedPairs(NamedTuple):
    """The result of a comparison of two builds."""

    pairs: list[Pair]
    renamed: list[tuple[AuditedKernel, AuditedKernel]]
    """Old and new, of one code and two names."""
    removed: Kernels
    new: Kernels
    unread: int
    """Changed kernels that were compared without their instructions."""

    @property
    def verdicts(self) -> list[Verdict]:
        return [pair.judgement.verdict for pair in self.pairs]


def compared(old: Sequence[AuditedKernel], new: Sequence[AuditedKernel]) -> AuditedPairs:
    """Judge all kernels that both builds have, by their instructions too as far as ``MOST_BYTES`` goes.

    Kernels of one key are the same kernel; where several share it, such as the lambdas of a function, their code tells
    them apart, and where that changed their symbols, then their order.  Of the rest, equal code is a kernel under
    another name.
    """
    removed, added = sorted(old, key=_order), sorted(new, key=_order)
    keys = {one.record.kernel: kernel_key(one.record.kernel) for one in (*removed, *added)}
    steps: tuple[Callable[[StaticRecord], Hashable], ...] = (
        lambda one: (one.kernel, one.profile.code_hash),
        lambda one: (keys[one.kernel], one.profile.code_hash),
        lambda one: one.kernel,
        lambda one: keys[one.kernel],
    )
    kept = [pair for alike in steps for pair in _matched(removed, added, alike)]
    renamed = _matched(removed, added, lambda one: one.profile.code_hash)
    pairs, unread = _with_instructions([Pair(*pair, _judged(pair[1], *(one.record for one in pair))) for pair in kept])
    return AuditedPairs(pairs, renamed, removed, added, unread)


def _order(kernel: AuditedKernel) -> tuple[str, str, int, str]:
    """By place and number: of symbols that differ in a number alone the longer one has the greater."""
    return kernel.file, kernel.arch, len(kernel.record.kernel), kernel.record.kernel


def _matched(
    old: Kernels, new: Kernels, alike: Callable[[StaticRecord], Hashable]
) -> list[tuple[AuditedKernel, AuditedKernel]]:
    """Take pairs out of both lists that are ``alike`` at one place, the first with the first."""
    waiting: dict[Hashable, Kernels] = defaultdict(list)
    for one in reversed(old):
        waiting[one.file, one.arch, alike(one.record)].append(one)
    pairs = [(same.pop(), one) for one in new if (same := waiting[one.file, one.arch, alike(one.record)])]
    matched = {id(one) for pair in pairs for one in pair}
    for side in (old, new):
        side[:] = [one for one in side if id(one) not in matched]
    return pairs


def _with_instructions(pairs: list[Pair]) -> tuple[list[Pair], int]:
    """The pairs, changed ones judged by their instructions where there is time; and for how many there was none."""
    changed = [place for place, pair in enumerate(pairs) if pair.judgement.verdict is not Verdict.UNCHANGED]
    changed.sort(key=lambda place: (rank_of(pairs[place].judgement.verdict), pairs[place].code_bytes))
    left, chosen = MOST_BYTES, []
    for place in changed:
        if pairs[place].code_bytes <= left:
            left -= pairs[place].code_bytes
            chosen.append(place)
    full = with_instructions_of([kernel for place in chosen for kernel in pairs[place][:2]])
    read = {place: (full[2 * at], full[2 * at + 1]) for at, place in enumerate(chosen) if 2 * at in full}
    for place, records in read.items():
        pairs[place] = pairs[place]._replace(judgement=_judged(pairs[place].new, *records))
    return pairs, len(changed) - len(read)


def _judged(kernel: AuditedKernel, before: StaticRecord, after: StaticRecord) -> Judgement:
    """The judgement on a kernel; a block is what fills an SM best, or in its code, and no change of its own."""
    key = Key(module=kernel.file, test="", workload=kernel.record.kernel)
    found = compare_static(key, kernel.arch, before, after)
    changes = tuple(change for change in found.changes if change.what != "block")
    return msgspec.structs.replace(found, changes=changes)


def _as_text(found: AuditedPairs, *, markdown: bool) -> str:
    """The differences as text."""
    changed = [pair.judgement for pair in found.pairs if pair.judgement.verdict is not Verdict.UNCHANGED]
    others = [*found.new, *found.removed, *(kernel for pair in found.renamed for kernel in pair)]
    symbols = [one.key.workload for one in changed] + [one.record.kernel for one in others]
    names = {symbol: library_name(symbol) for symbol in symbols}
    shown = {symbol: short_name(name) for symbol, name in names.items()}
    renamed = ((shown[old.record.kernel], shown[new.record.kernel]) for old, new in found.renamed)
    remarks = [
        *listed("renamed, with equal code", (f"{old} -> {new}" for old, new in renamed if old != new)),
        *listed("new", (f"{shown[one.record.kernel]} ({one.file}, {one.arch})" for one in found.new)),
        *listed("removed", (f"{shown[one.record.kernel]} ({one.file}, {one.arch})" for one in found.removed)),
    ]
    if found.unread:
        kernels = numbered(found.unread, "changed kernel")
        remarks.append(f"{kernels} compared by registers, stack, memory and size alone, without their instructions")
    summary = counted(found.verdicts) or "no kernel was there before"
    rows = rows_of(built_entries(changed, names))
    if markdown:
        return diff_markdown("Audit of machine code", rows, remarks, summary, column="verdict")
    return "\n".join(diff_lines(rows, remarks, summary)) + "\n"
