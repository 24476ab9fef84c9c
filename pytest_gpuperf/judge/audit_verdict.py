"""Two builds of a file, kernel by kernel, judged by the rules of the static gate (``static_rules``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.kernel_pairs import KernelPlace, paired
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.audited_kernel import Files
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict

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
    gone: list[KernelPlace]
    new: list[KernelPlace]
    whole: list[str]
    """What came or went as a whole: a file, an architecture of a file, each as a sentence."""


def compared(old: Files, new: Files, key: Callable[[str], str], record_of: RecordOf) -> Audit:
    """Judge all kernels of the files that both have; ``key`` is what the names of one kernel have in common."""
    audit = Audit([], [], [], [], [])
    for file in sorted({*old, *new}):
        if file not in old or file not in new:
            count = sum(len(several) for archs in (old.get(file) or new[file]).values() for several in archs.values())
            audit.whole.append(f"{file}: {'new' if file in new else 'gone'}, with {numbered(count, 'kernel')}")
            continue
        before, after = _archs(old[file]), _archs(new[file])
        audit.whole.extend(
            f"{file}: no longer for {arch} ({numbered(before[arch], 'kernel')})" for arch in before if arch not in after
        )
        audit.whole.extend(
            f"{file}: for {arch} too now ({numbered(after[arch], 'kernel')})" for arch in after if arch not in before
        )
        pairs = paired(file, old[file], new[file], key)
        audit.judged.extend(Judged(one, other, judged(one, other, record_of)) for one, other in pairs.kept)
        audit.renamed.extend(pairs.renamed)
        audit.gone.extend(pairs.gone)
        audit.new.extend(pairs.new)
    return audit


def joined(audits: Iterable[Audit]) -> Audit:
    """Several audits as one."""
    all_of = list(audits)
    return Audit(
        judged=[one for audit in all_of for one in audit.judged],
        renamed=[one for audit in all_of for one in audit.renamed],
        gone=[one for audit in all_of for one in audit.gone],
        new=[one for audit in all_of for one in audit.new],
        whole=[one for audit in all_of for one in audit.whole],
    )


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
    found = [one.judgement.verdict for one in audit.judged]
    return {verdict: found.count(verdict) for verdict in order if verdict in found}


def _archs(kernels: Mapping[str, Mapping[str, Iterable[object]]]) -> dict[str, int]:
    """Kernels of each architecture."""
    found: dict[str, int] = {}
    for archs in kernels.values():
        for arch, several in archs.items():
            found[arch] = found.get(arch, 0) + len(list(several))
    return dict(sorted(found.items()))
