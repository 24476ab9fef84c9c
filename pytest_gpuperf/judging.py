"""Static judgement of what a test found: each workload, on each target, against its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.evidence import Key, StaticRecord
from pytest_gpuperf.judge.static import compare_static, missing_static

if TYPE_CHECKING:
    from pytest_gpuperf.baselines import BaselineStore
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.session import WorkloadEvidence
    from pytest_gpuperf.verdict import Judgement


def judge_static(bench: Bench, workload: WorkloadEvidence) -> WorkloadEvidence:
    """The workload with its static judgements put before the others."""
    judged = tuple(_judge(bench, workload, arch, record) for arch, record in workload.static.items())
    return msgspec.structs.replace(workload, judgements=(*judged, *workload.judgements))


def _judge(bench: Bench, workload: WorkloadEvidence, arch: str, record: StaticRecord) -> Judgement:
    compiler = workload.toolchain
    found = bench.store.static(arch, workload.key, compiler)
    old = found.record
    if old is None and not workload.launched:
        old = recorded_under_another_name(bench.store, arch, compiler, workload.key, record)
    if old is None:
        return missing_static(workload.key, arch, compiler, found.other_toolchains)
    return compare_static(workload.key, arch, old, record)


def recorded_under_another_name(
    store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord
) -> StaticRecord | None:
    """The baseline of a kernel that this run compiled and did not get to launch, found by the kernel's name.

    Without a GPU a test may stop before the launch that gives the workload its own name.
    """
    tests = store.static_tests(arch, key.module, compiler)
    return next((old for old in tests.get(key.test, {}).values() if old.kernel == record.kernel), None)
