"""Kernels of one name in one test: which are the same, and what the others are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pytest_gpuperf.model.evidence import StaticRecord
    from pytest_gpuperf.model.result import WorkloadEvidence


def is_another(known: WorkloadEvidence, records: Mapping[str, StaticRecord], toolchain: str) -> bool:
    """Whether ``records``, by architecture, are of another kernel than the one of their name that is known."""
    return known.toolchain != toolchain or any(
        arch in known.static and not _is_same_code(known.static[arch], record) for arch, record in records.items()
    )


def is_of(workload: WorkloadEvidence, kernel: WorkloadEvidence) -> bool:
    """Whether a workload launches this kernel, so that its evidence is the kernel's own."""
    same_name = any(record.kernel == kernel.key.workload for record in workload.static.values())
    return same_name and not is_another(workload, kernel.static, kernel.toolchain)


def numbered(
    kernels: Iterable[WorkloadEvidence], known: Iterable[WorkloadEvidence], taken: Collection[str]
) -> Iterator[WorkloadEvidence]:
    """Those that are none of the ``known``, each once, as ``name (1)``, ``name (2)``: names that are not ``taken``."""
    told, names = list(known), set(taken)
    for kernel in kernels:
        if not any(_is_the_same(kernel, other) for other in told):
            told.append(kernel)
            name = next(one for n in count(1) if (one := f"{kernel.key.workload} ({n})") not in names)
            names.add(name)
            yield msgspec.structs.replace(kernel, key=msgspec.structs.replace(kernel.key, workload=name))


def _is_the_same(one: WorkloadEvidence, other: WorkloadEvidence) -> bool:
    names = {record.kernel for evidence in (one, other) for record in evidence.static.values()}
    of_one_name = len(names) == 1 and one.static.keys() == other.static.keys()
    return of_one_name and not is_another(one, other.static, other.toolchain)


def _is_same_code(one: StaticRecord, other: StaticRecord) -> bool:
    """Whether they are one kernel: of the same machine code, or of the same source, which may compile to several."""
    same_source = bool(one.source_hash) and one.source_hash == other.source_hash
    return same_source or one.profile.code_hash == other.profile.code_hash
