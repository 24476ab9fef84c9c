"""Two builds of a file, kernel by kernel: which kernel is which, judged by the rules of the static gate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.machine_code.audited import AuditedKernel, with_instructions_of
from pytest_gpuperf.compile.machine_code.stable_names import kernel_key
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict

MOST_BYTES = 4 << 20
"""Of machine code that is disassembled: 5 s on a core."""
VERDICTS = (Verdict.WORSE, Verdict.BETTER, Verdict.SAME, Verdict.UNCHANGED)
"""Of machine code that one compiler or several made, the worst first."""


class Pair(NamedTuple):
    """One kernel of both builds."""

    old: AuditedKernel
    new: AuditedKernel
    judgement: Judgement


class AuditedPairs(NamedTuple):
    """What a comparison of two builds found."""

    pairs: list[Pair]
    renamed: list[tuple[AuditedKernel, AuditedKernel]]
    """Old and new, of one code and two names."""
    gone: list[AuditedKernel]
    new: list[AuditedKernel]
    whole: list[str]
    """Sentences on architectures of files that one build alone has."""
    unread: int
    """Changed kernels that were compared without their instructions, though both builds have them."""

    def counts(self) -> dict[Verdict, int]:
        """Kernels by verdict, the worst first."""
        found = Counter(pair.judgement.verdict for pair in self.pairs)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def compared(old: Sequence[AuditedKernel], new: Sequence[AuditedKernel]) -> AuditedPairs:
    """Judge all kernels that both builds have, by their instructions too as far as ``MOST_BYTES`` goes.

    Kernels of one key are the same kernel; where several share it, such as the lambdas of a function, their code tells
    them apart, and where that changed their symbols, then their order.  Of the rest, equal code is a kernel under
    another name.
    """
    before, after = (Counter((one.file, one.arch) for one in side) for side in (old, new))
    whole = _one_sided("gone", before, after) + _one_sided("new", after, before)
    gone, came = (
        [one for one in _ordered(side) if (one.file, one.arch) in others]
        for side, others in ((old, after), (new, before))
    )
    keys = {one.record.kernel: kernel_key(one.record.kernel) for one in (*gone, *came)}
    steps: tuple[Callable[[AuditedKernel], Hashable], ...] = (
        lambda one: (one.record.kernel, one.record.profile.code_hash),
        lambda one: (keys[one.record.kernel], one.record.profile.code_hash),
        lambda one: one.record.kernel,
        lambda one: keys[one.record.kernel],
    )
    kept = [pair for alike in steps for pair in _taken(gone, came, alike)]
    renamed = _taken(gone, came, lambda one: one.record.profile.code_hash)
    pairs = [Pair(*pair, _judged(pair[1], *(one.record for one in pair))) for pair in kept]
    pairs, unread = _looked_at(pairs)
    return AuditedPairs(pairs, renamed, gone, came, whole, unread)


def _one_sided(word: str, here: Counter[tuple[str, str]], there: Collection[tuple[str, str]]) -> list[str]:
    """A sentence for each file of which one build alone has architectures."""
    archs: defaultdict[str, list[str]] = defaultdict(list)
    for file, arch in sorted(here.keys() - there):
        archs[file].append(arch)
    return [
        f"{file} for {', '.join(several)}: {word}, with {numbered(sum(here[file, arch] for arch in several), 'kernel')}"
        for file, several in archs.items()
    ]


def _ordered(kernels: Iterable[AuditedKernel]) -> list[AuditedKernel]:
    """By place and number: of symbols that differ in a number alone the longer one has the greater."""
    return sorted(kernels, key=lambda one: (one.file, one.arch, len(one.record.kernel), one.record.kernel))


def _taken(
    old: list[AuditedKernel], new: list[AuditedKernel], alike: Callable[[AuditedKernel], Hashable]
) -> list[tuple[AuditedKernel, AuditedKernel]]:
    """Take pairs out of both lists that are ``alike`` at one place, the first with the first."""
    waiting: dict[Hashable, list[AuditedKernel]] = defaultdict(list)
    for one in reversed(old):
        waiting[one.file, one.arch, alike(one)].append(one)
    pairs = [(same.pop(), one) for one in new if (same := waiting[one.file, one.arch, alike(one)])]
    taken = {id(one) for pair in pairs for one in pair}
    for side in (old, new):
        side[:] = [one for one in side if id(one) not in taken]
    return pairs


def _looked_at(pairs: list[Pair]) -> tuple[list[Pair], int]:
    """The pairs, changed ones judged by their instructions where there is time; and for how many there was none."""
    changed = [
        number for number, (old, _, found) in enumerate(pairs) if old.cubin and found.verdict is not Verdict.UNCHANGED
    ]
    changed.sort(key=lambda number: (VERDICTS.index(pairs[number].judgement.verdict), _code_bytes(pairs[number])))
    left, chosen = MOST_BYTES, []
    for number in changed:
        if _code_bytes(pairs[number]) <= left:
            left -= _code_bytes(pairs[number])
            chosen.append(number)
    full = with_instructions_of([kernel for number in chosen for kernel in pairs[number][:2]])
    read = {number: (full[2 * at], full[2 * at + 1]) for at, number in enumerate(chosen) if 2 * at in full}
    again = [
        pair._replace(judgement=_judged(pair.new, *read[number])) if number in read else pair
        for number, pair in enumerate(pairs)
    ]
    return again, len(changed) - len(read)


def _code_bytes(pair: Pair) -> int:
    return pair.old.record.profile.code_bytes + pair.new.record.profile.code_bytes


def _judged(kernel: AuditedKernel, before: StaticRecord, after: StaticRecord) -> Judgement:
    """The judgement on a kernel; a block is what fills an SM best, or in its code, and no change of its own."""
    key = Key(module=kernel.file, test="", workload=kernel.record.kernel)
    found = compare_static(key, kernel.arch, before, after)
    changes = tuple(change for change in found.changes if change.what != "block")
    return msgspec.structs.replace(found, changes=changes)
