"""Static judgement of what a test found: each workload, on each target, against its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.evidence import Key, StaticRecord
from pytest_gpuperf.judge.static import compare_static, missing_static

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.session import WorkloadEvidence
    from pytest_gpuperf.verdict import Judgement


def judge_static(bench: Bench, workload: WorkloadEvidence) -> WorkloadEvidence:
    """The workload with its static judgements put before the others."""
    from pytest_gpuperf.compile import toolchain

    if not workload.static:
        return workload
    compiler = toolchain()
    judged = tuple(_judge(bench, workload.key, arch, record, compiler) for arch, record in workload.static.items())
    return msgspec.structs.replace(workload, judgements=(*judged, *workload.judgements))


def _judge(bench: Bench, key: Key, arch: str, record: StaticRecord, compiler: str) -> Judgement:
    found = bench.store.static(arch, key, compiler)
    if found.record is None:
        return missing_static(key, arch, compiler, found.other_toolchains)
    return compare_static(key, arch, found.record, record)
