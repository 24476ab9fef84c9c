"""Two builds of files, kernel by kernel, judged by the rules of the static gate (``static_rules``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.audited_kernel import AuditedKernel, Files, Kernels
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict


class KernelPlace(NamedTuple):
    """One kernel for one architecture in one file."""

    file: str
    arch: str
    symbol: str
    number: int
    """Among those of the same symbol."""
    kernel: AuditedKernel


RecordOf = Callable[[KernelPlace], StaticRecord]


class Judged(NamedTuple):
    """One kernel of both builds."""

    old: KernelPlace
    new: KernelPlace
    judgement: Judgement


class Audit(NamedTuple):
    """What a comparison of two builds found."""

    judged: list[Judged]
    renamed: list[tuple[KernelPlace, KernelPlace]]
    """Old and new, of one code and two names."""
    gone: list[KernelPlace]
    new: list[KernelPlace]
    whole: list[str]
    """What came or went as a whole: a file, an architecture of a file, each as a sentence."""


def compared(old: Files, new: Files, key: Callable[[str], str], record_of: RecordOf) -> Audit:
    """Judge all kernels of the files that both have; ``key`` is what the names of one kernel have in common."""
    audits = []
    for file in sorted({*old, *new}):
        if file in old and file in new:
            audits.append(_of_file(file, old[file], new[file], key, record_of))
        else:
            count = sum(_archs(old.get(file) or new[file]).values())
            words = f"{file}: {'new' if file in new else 'gone'}, with {numbered(count, 'kernel')}"
            audits.append(Audit([], [], [], [], [words]))
    return joined(audits)


def _of_file(file: str, old: Kernels, new: Kernels, key: Callable[[str], str], record_of: RecordOf) -> Audit:
    before, after = _archs(old), _archs(new)
    lost = [f"no longer for {arch} ({numbered(before[arch], 'kernel')})" for arch in sorted(before.keys() - after)]
    more = [f"for {arch} too now ({numbered(after[arch], 'kernel')})" for arch in sorted(after.keys() - before)]
    pairs = paired(file, old, new, key)
    found = [Judged(one, other, judged(one, other, record_of)) for one, other in pairs.kept]
    return Audit(found, *pairs[1:], [f"{file}: {words}" for words in (*lost, *more)])


def _archs(kernels: Kernels) -> Counter[str]:
    """Kernels of each architecture."""
    found = Counter[str]()
    for archs in kernels.values():
        found.update({arch: len(several) for arch, several in archs.items()})
    return found


def joined(audits: Iterable[Audit]) -> Audit:
    """Several audits as one."""
    parts = zip(Audit([], [], [], [], []), *audits, strict=True)
    return Audit._make([one for part in same for one in part] for same in parts)


def judged(old: KernelPlace, new: KernelPlace, record_of: RecordOf) -> Judgement:
    """One kernel against what it was."""
    key = Key(module=new.file, test="", workload=new.symbol)
    found = compare_static(key, new.arch, record_of(old), record_of(new))
    if old.kernel.block_from == new.kernel.block_from == "best":  # each at its own best: no launch has changed
        changes = tuple(change for change in found.changes if change.what != "block")
        found = msgspec.structs.replace(found, changes=changes)
    return found


def counts(audit: Audit) -> Mapping[Verdict, int]:
    """Kernels by verdict, the worst first."""
    order = (Verdict.WORSE, Verdict.NOT_COMPARABLE, Verdict.BETTER, Verdict.SAME, Verdict.UNCHANGED)
    found = Counter(one.judgement.verdict for one in audit.judged)
    return {verdict: found[verdict] for verdict in order if found[verdict]}


# --- which kernel is which -----------------------------------------------------------------------

_Both = list[tuple[KernelPlace, KernelPlace]]
_Alike = Callable[[KernelPlace], Hashable]


class Pairs(NamedTuple):
    """The kernels that two builds of a file have for the architectures of both."""

    kept: _Both
    """Old and new, of one name."""
    renamed: _Both
    gone: list[KernelPlace]
    new: list[KernelPlace]


def paired(file: str, old: Kernels, new: Kernels, key: Callable[[str], str]) -> Pairs:
    """Pairs of kernels.

    Those of one ``key`` are the same kernel; where several share it, such as the lambdas of a function, their code
    tells them apart, and where that changed their symbols, then their order.  Of the rest, equal code is a kernel
    under another name.
    """
    both = _archs(old).keys() & _archs(new).keys()
    gone, came = ([place for place in _places(file, side) if place.arch in both] for side in (old, new))
    keys = {symbol: key(symbol) for symbol in {*old, *new}}
    steps: tuple[_Alike, ...] = (
        lambda place: (place.arch, place.symbol, place.kernel.code),
        lambda place: (place.arch, keys[place.symbol], place.kernel.code),
        lambda place: (place.arch, place.symbol),
        lambda place: (place.arch, keys[place.symbol]),
    )
    kept: _Both = []
    for alike in steps:
        found, gone, came = _matched(gone, came, alike)
        kept += found
    renamed, gone, came = _matched(gone, came, lambda place: (place.arch, place.kernel.code))
    return Pairs(sorted(kept), sorted(renamed), gone, came)


def _places(file: str, kernels: Kernels) -> list[KernelPlace]:
    """All kernels, in the order of their numbers: of names that differ in one alone the longer has the greater."""
    return [
        KernelPlace(file, arch, symbol, number, kernel)
        for symbol in sorted(kernels, key=lambda one: (len(one), one))
        for arch, several in sorted(kernels[symbol].items())
        for number, kernel in enumerate(several)
    ]


def _matched(
    old: list[KernelPlace], new: list[KernelPlace], alike: _Alike
) -> tuple[_Both, list[KernelPlace], list[KernelPlace]]:
    """Pairs of places that are ``alike``, the first with the first; and what is left of both."""
    waiting: dict[Hashable, list[KernelPlace]] = defaultdict(list)
    for place in reversed(old):
        waiting[alike(place)].append(place)
    found = [(of_old.pop(), place) if (of_old := waiting[alike(place)]) else (None, place) for place in new]
    still = {id(place) for places in waiting.values() for place in places}
    pairs = [(one, other) for one, other in found if one is not None]
    return pairs, [place for place in old if id(place) in still], [other for one, other in found if one is None]
