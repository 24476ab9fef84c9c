"""Kernels of one name in one test: which are the same, and what tells the others apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence


class AmbiguousKernel(ValueError):
    """One test has several kernels of one name, and nothing that could be read tells them apart."""


@dataclasses.dataclass(frozen=True)
class CompiledKernel:
    """A kernel of a test that stands for itself until a workload launches it."""

    evidence: WorkloadEvidence
    options: tuple[str, ...] = ()
    """Compiler options as the test gave them, and whatever else it gave that tells kernels of one text apart."""
    file: str = ""
    """Name of the source's or cubin's file; empty for text in the test."""

    @property
    def name(self) -> str:
        return self.evidence.key.workload

    def is_another(self, records: Mapping[str, StaticRecord], toolchain: str) -> bool:
        """Whether ``records``, by architecture, are of another kernel."""
        known = self.evidence
        return known.toolchain != toolchain or any(
            arch in known.static and not _is_same_code(known.static[arch], record) for arch, record in records.items()
        )

    def is_launched_by(self, workload: WorkloadEvidence) -> bool:
        """Whether a workload launches this kernel, so that its evidence is the kernel's own."""
        same_name = any(record.kernel == self.name for record in workload.static.values())
        return same_name and not self.is_another(workload.static, workload.toolchain)


def labelled(
    kernels: Iterable[CompiledKernel], among: Sequence[CompiledKernel], taken: Collection[str], *, refuse: bool = True
) -> Iterator[WorkloadEvidence]:
    """The evidence of each kernel under its name, or under one with what only it has ``among`` those of its name.

    ``work [-DTILE=32]``, ``work [tiled.cu]``, ``work [without -DTILE=32]``: names that are not ``taken``, each once;
    ``work [kernel]`` where a callable has the name.
    If two kernels get the same one, raises ``AmbiguousKernel``, or, not to ``refuse`` them, leaves the later one out.
    """
    names = set(taken)
    told: list[CompiledKernel] = []
    for kernel in kernels:
        if any(_are_the_same(kernel, other) for other in told):
            continue
        told.append(kernel)
        others = [one for one in among if one.name == kernel.name and not _are_the_same(one, kernel)]
        name = next((label for label in _labels(kernel, others) if label not in names), None)
        if name is None and not refuse:
            continue
        if name is None:
            key = kernel.evidence.key
            raise AmbiguousKernel(
                f"{key.node_id}: several kernels called {kernel.name!r} differ in nothing but their text, so their "
                "baselines could be mixed up: rename the function of one, or measure it with gpuperf(..., name='...')"
            )
        names.add(name)
        yield msgspec.structs.replace(kernel.evidence, key=msgspec.structs.replace(kernel.evidence.key, workload=name))


def _labels(kernel: CompiledKernel, others: Sequence[CompiledKernel]) -> Iterator[str]:
    """Names for a kernel, the plainest first."""
    files = {one.file for one in others}
    everywhere = set(kernel.options).intersection(*(one.options for one in others)) if others else set(kernel.options)
    own = [option for option in kernel.options if option not in everywhere]
    if kernel.file and files - {kernel.file}:
        own.insert(0, kernel.file)
    if own:
        yield f"{kernel.name} [{' '.join(own)}]"
        return
    yield kernel.name
    lacking = dict.fromkeys(option for one in others for option in one.options if option not in kernel.options)
    if lacking:
        yield f"{kernel.name} [without {' '.join(lacking)}]"
    elif not others:
        yield f"{kernel.name} [kernel]"  # beside a callable of the name


def _are_the_same(one: CompiledKernel, other: CompiledKernel) -> bool:
    of_one_name = one.name == other.name and one.evidence.static.keys() == other.evidence.static.keys()
    return of_one_name and not one.is_another(other.evidence.static, other.evidence.toolchain)


def _is_same_code(one: StaticRecord, other: StaticRecord) -> bool:
    """Whether they are one kernel: of the same machine code, or of the same source, which may compile to several."""
    same_source = bool(one.source_hash) and one.source_hash == other.source_hash
    return same_source or one.profile.code_hash == other.profile.code_hash
