"""Finding records where a name does not lead to them: of a kernel that was not launched, and of what was renamed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping

import msgspec

from pytest_gpuperf.baselines.store import Baselines
from pytest_gpuperf.compile.machine_code.occupancy import occupancy
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import WorkloadRecords


def static_baseline(
    store: Baselines, arch: str, toolchain: str, work: WorkloadEvidence, workloads: Collection[WorkloadEvidence]
) -> StaticRecord | None:
    """What ``work`` is compared with; ``workloads`` are all that its test has in this run.

    A kernel that was compiled and not launched has a name that depends on others: without a GPU a test may stop before
    the launch that gives a workload its own, and a label (``test_record.labelled``) follows the kernel's options.  So
    its baseline is the record of its code, of its name, or the first of its kernel that no other workload has.
    """
    own = store.static(arch, work.key, toolchain)
    record = work.static.get(arch)
    if work.launched or record is None:
        return own
    of_test: Mapping[str, StaticRecord] = store.of_test(arch, work.key, toolchain)
    known = {name: old for name, old in of_test.items() if old.kernel == record.kernel}
    same = next((old for old in known.values() if old.profile.code_hash == record.profile.code_hash), None)
    if same is not None:
        return same
    others = [one for one in workloads if one.key != work.key and arch in one.static]
    names = {one.key.workload for one in others}
    codes = {one.static[arch].profile.code_hash for one in others}
    if own is not None and own.profile.code_hash not in codes:
        return own
    free = (old for name, old in known.items() if name not in names and old.profile.code_hash not in codes)
    return next(free, None)


def baseline_of_any_compiler(
    store: Baselines, arch: str, work: WorkloadEvidence, workloads: Collection[WorkloadEvidence]
) -> tuple[StaticRecord | None, str]:
    """``static_baseline`` of the compiler of ``work``, else of the latest other one that has one; and which it is."""
    for toolchain in store.compilers(arch, work.key, work.toolchain):
        found = static_baseline(store, arch, toolchain, work, workloads)
        if found is not None:
            return found, toolchain
    return None, work.toolchain


def records_to_replace(
    store: Baselines, arch: str, work: WorkloadEvidence, old: StaticRecord | None,
    workloads: Collection[WorkloadEvidence],
) -> dict[Key, StaticRecord | None]:  # fmt: skip
    """The records that an update of ``work`` writes anew, by their keys; ``old`` is what it is compared with.

    Its own, or, of a kernel whose launches this run did not reach, those of all workloads that launch the old code.
    """
    of_test = store.of_test(arch, work.key, work.toolchain)
    if old is None or work.launched or work.key.workload in of_test:
        return {work.key: old}
    met = {one.key.workload for one in workloads}
    return {
        msgspec.structs.replace(work.key, workload=name): known
        for name, known in of_test.items()
        if name not in met and (known.kernel, known.profile.code_hash) == (old.kernel, old.profile.code_hash)
    }


def under_recorded_launch(record: StaticRecord, old: StaticRecord, arch: str) -> StaticRecord:
    """``record`` as it is if it was launched; else with the launch of ``old``, and the occupancy that it has there."""
    if record.block is not None or old.block is None:
        return record
    mine, its = ((one.profile.registers, one.profile.shared_bytes) for one in (record, old))
    fits, threads = old.occupancy, math.prod(old.block)
    if mine != its and fits is not None:
        fits = occupancy(record.profile, arch, threads, max(old.dynamic_shared_bytes, 0)) if threads > 0 else None
    return msgspec.structs.replace(
        record, block=old.block, dynamic_shared_bytes=old.dynamic_shared_bytes, occupancy=fits, grid=old.grid
    )


# --- renamed workloads: those with the same machine code ------------------------------------------


def renamed_workloads(before: Mapping[Key, WorkloadRecords], after: Mapping[Key, WorkloadRecords]) -> dict[Key, Key]:
    """Names of ``before`` by those of ``after``; no record moves twice."""
    missing = {key: records for key, records in before.items() if key not in after}
    found: dict[Key, Key] = {}
    for key in sorted(after.keys() - before.keys()):
        origin = origin_of(key, after[key], missing)
        if origin is not None:
            found[key] = origin
            del missing[origin]
    return found


def origin_of(key: Key, new: WorkloadRecords, missing: Mapping[Key, WorkloadRecords]) -> Key | None:
    """The workload with the machine code of ``new``, launched alike; of several the one whose name is nearest."""
    alike = sorted(one for one, old in missing.items() if _same_code(old, new))
    return max(alike, key=lambda one: _nearness(one, key), default=None)


def of_same_kernel(key: Key, new: WorkloadRecords, missing: Mapping[Key, WorkloadRecords]) -> list[Key]:
    """Workloads near ``key`` that launch a kernel of the same name, so that ``new`` may be any of them.

    Near are those of its test module, and in another one those of the same test and workload names.
    """
    names = (key.test, key.workload)
    near = (one for one in missing if one.module == key.module or (one.test, one.workload) == names)
    return sorted(one for one in near if new.kernel and missing[one].kernel == new.kernel)


def _same_code(old: WorkloadRecords, new: WorkloadRecords) -> bool:
    for gpu in old.times.keys() & new.times.keys():
        was, now = old.times[gpu].identity, new.times[gpu].identity
        if was.code and now.code:
            return was.same_execution(now)
    pairs = [(old.static[at], new.static[at]) for at in old.static.keys() & new.static.keys()]
    return any(
        was.profile.code_hash == now.profile.code_hash and (None in (was.block, now.block) or was.block == now.block)
        for was, now in pairs
    )


def _nearness(was: Key, now: Key) -> tuple[bool, ...]:
    return ((was.module, was.test) == (now.module, now.test), _parameters(was) == _parameters(now),
            was.workload == now.workload, was.module == now.module, was.test == now.test)  # fmt: skip


def _parameters(key: Key) -> str:
    """Those of its test, as the node id ends: ``1024]``; empty without any."""
    return key.test.partition("[")[2]


def move_command(old: Key, new: Key) -> str:
    """What lets the record follow, with as much else that was renamed alike as there is."""
    names = old.node_id, new.node_id
    if old.workload != new.workload:
        names = str(old), str(new)
    elif old.test == new.test:
        names = old.module, new.module
    elif _parameters(old) == _parameters(new):
        names = old.node_id.partition("[")[0], new.node_id.partition("[")[0]
    return " ".join(["gpuperf baselines mv", *map(shlex.quote, names)])
