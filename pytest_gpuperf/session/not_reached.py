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


class _Lacking(NamedTuple):
    """What has no verdict."""

    target: str
    kind: EvidenceKind
    workload: str


def not_reached(run: Run, test: TestRecord, *, stopped: bool = True) -> list[Judgement]:
    """NOT-MEASURED for all on record that a test did not reach, ``stopped`` early or ended without it.

    A workload that it reached lacks what was not judged: machine code, its time, on record or not, or a secondary
    metric.  Asked after the static judgement.  Raises ``BaselineError``.
    """
    passed = PASSED_WITHOUT if run.revision is None else PASSED_WITHOUT_THEIRS
    why = f"the test ended at its first need for {ENDED_AT[test.status]}. {PUT_BEHIND}" if stopped else passed
    where = "has a baseline" if run.revision is None else f"is in {run.revision.name}"
    times = _recorded_times(run, test)
    lacking = [*_static(run, test), *_times(run, test, times)]
    never = [] if stopped else _never_launched(run, test)
    found = []
    for one in dict.fromkeys([*lacking, *never]):
        work = test.workloads.get(one.workload)
        unjudged, needs_gpu = "", one not in lacking or (stopped and test.status == "static only")
        if work is not None and work.launched:  # it was reached
            known = "a baseline" if one.workload in times else "no baseline of its time"
            unjudged = WITHOUT_CODE if one.kind == "static" else f"has {known}, and {CAUGHT}"
        found.append(Judgement(
            key=test.key(one.workload), target=one.target, kind=one.kind, verdict=Verdict.NOT_MEASURED,
            reason=unjudged or f"{where} and was not reached: {why}", needs_gpu=needs_gpu and not unjudged,
        ))  # fmt: skip
    return found


def _static(run: Run, test: TestRecord) -> Iterator[_Lacking]:
    compilers = {work.toolchain for work in test.workloads.values() if work.toolchain}
    with contextlib.suppress(ToolchainMissing):  # nothing of NVRTC's can be compared here then, reached or not
        compilers.add(toolchain())
    others_time = _timed_elsewhere(run, test)
    for arch in run.expected_archs:
        for compiler in compilers:
            recorded = run.store.of_test(arch, test.key(""), compiler)
            compared = set(_compared(run, test, arch, compiler))
            for name, old in recorded.items():
                replaced = (old.kernel, old.profile.code_hash) in compared or name in others_time
                if not replaced and not _has_code(run, test, name, arch):
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
    if run.has_gpu or (run.revision is None and run.gpu.facts_asked):
        return
    if run.revision is not None:
        names = run.revision.launched_by(test.module, test.test)
        found = [_Lacking(arch, "static", name) for name in names for arch in run.expected_archs]
    else:
        times = {target: run.store.of_test(target, test.key("")) for target in run.store.devices()}
        found = [_Lacking(target, "time", name) for target, there in times.items() for name in there]
    launched = [name for name, work in test.workloads.items() if work.launched]
    yield from (one for one in found if one.workload not in launched)


def _recorded_times(run: Run, test: TestRecord) -> Mapping[str, TimeRecord]:
    """Times of the test's workloads on this GPU, by name; none without one."""
    return run.store.of_test(run.device.facts.slug, test.key("")) if run.has_gpu else {}


def _timed_elsewhere(run: Run, test: TestRecord) -> set[str]:
    """Workloads that are timed on other GPU models and not on this one, as others of the test are: not this GPU's."""
    here = _recorded_times(run, test)
    if not here:
        return set()
    times = (run.store.of_test(device, test.key("")) for device in run.store.devices())
    return {name for there in times for name in there} - here.keys()


def _times(run: Run, test: TestRecord, recorded: Mapping[str, TimeRecord]) -> Iterator[_Lacking]:
    """Of launches that no time was judged of, on record or not, and of secondary metrics on record."""
    if not run.has_gpu:
        return
    target = run.device.facts.slug
    launched = [name for name, work in test.workloads.items() if work.launched]
    for name in dict.fromkeys([*launched, *recorded]):
        judged = {one.kind for one in test.workloads[name].judgements} if name in test.workloads else set()
        if "time" not in judged:
            yield _Lacking(target, "time", name)
        elif name in recorded:
            for kind, field in BESIDE_FIELDS.items():
                if kind not in judged and getattr(recorded[name].beside, field, None) is not None:
                    yield _Lacking(target, kind, name)
