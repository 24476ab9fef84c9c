"""NOT-MEASURED within one test: records of its own that it did not reach, or reached without a verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_gpuperf.baselines.lookup import static_baseline
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.model.verdict import BESIDE_FIELDS, EvidenceKind, Judgement, Verdict
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord

ENDED_AT = {"static only": "a GPU", "checked only": "a time or a counter that this run does not take"}
"""What a test that stopped early needed, by its status."""
PUT_BEHIND = "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)"
PASSED_WITHOUT = (
    "the test passed without it. Let it come to cuda_kernel(...) or gpuperf(...) again; if it is meant to go: "
    "pytest --update-baselines=all, on a GPU; after a renaming: gpuperf baselines mv OLD NEW"
)
PASSED_WITHOUT_THEIRS = (
    "the test passed without it. Let it come to cuda_kernel(...) or gpuperf(...) again; if it is meant to go, give the "
    "test that does without it a name of its own"
)
WITHOUT_CODE = (
    "has a baseline of its machine code and brings none for this architecture. Launch a kernel of cuda_kernel(...), "
    "without an arch= that leaves it out, or hand over code for it too; if it is meant to go: gpuperf baselines rm NAME"
)
CAUGHT = "its measurement did not come to an end: gpuperf(...) raised, and the test caught that. Let it fail the test"
UNFINISHED = f"has a baseline, and {CAUGHT}"
NEVER_TIMED = f"has no baseline of its time, and {CAUGHT}"


class _Lacking(NamedTuple):
    """What has no verdict."""

    target: str
    kind: EvidenceKind
    workload: str


def not_reached(run: Run, test: TestRecord, *, stopped: bool = True) -> list[Judgement]:
    """NOT-MEASURED for all on record that a test did not reach, ``stopped`` early or ended without it.

    A workload that it reached lacks what was not judged: machine code, its time, on record or not, or a secondary
    metric.  Asked after the static judgement.  A workload that is timed on other GPU models and not on this one, as
    others of its test are, is not this GPU's.  Raises ``BaselineError``.
    """
    passed = PASSED_WITHOUT if run.revision is None else PASSED_WITHOUT_THEIRS
    why = f"the test ended at its first need for {ENDED_AT[test.status]}. {PUT_BEHIND}" if stopped else passed
    where = "has a baseline" if run.revision is None else f"is in {run.revision.name}"
    found = dict.fromkeys([*_static(run, test), *_times(run, test)], stopped and test.status == "static only")
    for one in () if stopped else _never_launched(run, test):
        found.setdefault(one, True)
    return [
        Judgement(
            key=test.key(one.workload), target=one.target, kind=one.kind, verdict=Verdict.NOT_MEASURED,
            reason=unjudged or f"{where} and was not reached: {why}", needs_gpu=needs_gpu and not unjudged,
        )
        for one, needs_gpu in found.items()
        if not _is_of_another_gpu(run, test, one.workload)
        for unjudged in [_why_unjudged(run, test, one)]
    ]  # fmt: skip


def _why_unjudged(run: Run, test: TestRecord, one: _Lacking) -> str:
    """What kept a workload that the test did reach from a verdict; empty where it was not reached."""
    if not _is_launched(test, one.workload):
        return ""
    if one.kind == "static":
        return WITHOUT_CODE
    return UNFINISHED if one.workload in _timed(run, test, one.target) else NEVER_TIMED


def _is_launched(test: TestRecord, workload: str) -> bool:
    return workload in test.workloads and test.workloads[workload].launched


def _timed(run: Run, test: TestRecord, target: str) -> Mapping[str, TimeRecord]:
    """Times on record of the test's workloads, by name."""
    return run.store.time_tests(target, test.module).get(test.test, {})


def _is_of_another_gpu(run: Run, test: TestRecord, workload: str) -> bool:
    if not run.has_gpu:
        return False
    timed = {target: _timed(run, test, target) for target in run.store.devices()}
    here = timed.pop(run.device.facts.slug, {})
    return bool(here) and workload not in here and any(workload in there for there in timed.values())


def _static(run: Run, test: TestRecord) -> Iterator[_Lacking]:
    compilers = {work.toolchain for work in test.workloads.values() if work.toolchain}
    with contextlib.suppress(ToolchainMissing):  # nothing of NVRTC's can be compared here then, reached or not
        compilers.add(toolchain())
    for arch in run.expected_archs:
        for compiler in compilers:
            recorded = run.store.static_tests(arch, test.module, compiler).get(test.test, {})
            replaced = set(_compared(run, test, arch, compiler))
            for name, old in recorded.items():
                if (old.kernel, old.profile.code_hash) not in replaced and not _has_code(run, test, name, arch):
                    yield _Lacking(arch, "static", name)


def _compared(run: Run, test: TestRecord, arch: str, compiler: str) -> Iterator[tuple[str, str]]:
    """Kernel and code of the baselines that kernels without a launch were compared with."""
    for work in test.workloads.values():
        if arch in work.static and not work.launched and work.toolchain == compiler:
            old = static_baseline(run.store, arch, compiler, work, test.workloads.values())
            if old is not None:
                yield old.kernel, old.profile.code_hash


def _has_code(run: Run, test: TestRecord, name: str, arch: str) -> bool:
    """Whether the workload came with machine code for this architecture, or another one may have been chosen for it.

    A GPU decides what a test compiles for it, and Triton compiles for one at a time.
    """
    work = test.workloads.get(name)
    if work is None or not work.static:
        return False
    return arch in work.static or run.has_gpu or work.toolchain.lower().startswith("triton")


def _never_launched(run: Run, test: TestRecord) -> Iterator[_Lacking]:
    """What no GPU could time, since the test launches nothing of these names, which are on record or in the revision.

    Not where the test asked whether there is a GPU; a revision is told the same of one.
    """
    if run.has_gpu:
        return
    if run.revision is not None:
        for name in run.revision.launched_by(test.module, test.test):
            if not _is_launched(test, name):
                yield from (_Lacking(arch, "static", name) for arch in run.expected_archs)
    elif not run.gpu.facts_asked:
        for target in run.store.devices():
            yield from (
                _Lacking(target, "time", one) for one in _timed(run, test, target) if not _is_launched(test, one)
            )


def _times(run: Run, test: TestRecord) -> Iterator[_Lacking]:
    if not run.has_gpu:
        return
    target = run.device.facts.slug
    recorded = _timed(run, test, target)
    for name, work in test.workloads.items():
        if work.launched and name not in recorded and all(one.kind != "time" for one in work.judgements):
            yield _Lacking(target, "time", name)
    for name, old in recorded.items():
        judged = {one.kind for one in test.workloads[name].judgements} if name in test.workloads else set()
        if "time" not in judged:
            yield _Lacking(target, "time", name)
            continue
        for kind, field in BESIDE_FIELDS.items():
            if kind not in judged and getattr(old.beside, field, None) is not None:
                yield _Lacking(target, kind, name)
