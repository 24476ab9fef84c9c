"""Which record a new workload continues under another name: of the same code, launched alike, or of the same kernel."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Mapping

from pytest_gpuperf.model.evidence import Identity, Key, StaticRecord
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.model.workload_records import WorkloadRecords


def parameters(key: Key) -> str:
    """Those of its test, as the node id ends: ``[1024]``; empty without any."""
    return key.test[key.test.find("[") :] if "[" in key.test else ""


@dataclasses.dataclass(frozen=True)
class Work:
    """What is known of one workload, new or on record."""

    key: Key
    static: Mapping[str, StaticRecord]
    """By architecture, of one toolchain."""
    identity: Identity | None
    """What was timed; None where nothing was."""

    @property
    def kernels(self) -> set[str]:
        """Names of what it launches; empty for a callable."""
        return {record.kernel for record in self.static.values()}


def origin_of(new: Work, gone: Collection[Work]) -> Work | None:
    """The record whose machine code and launch are those of ``new``; else the only one of its kernel.

    The same kernel counts within a module, and in another one for a test and workload of the same names.  Of several
    that would do, the one with the same parameters or names comes first; several of a kernel that differ in
    nothing but their code are no answer.
    """
    alike = [one for one in gone if _same_execution(one, new)]
    if alike:
        return max(sorted(alike, key=lambda one: one.key), key=lambda one: _nearness(one.key, new.key))
    of_kernel = of_its_kernel(new, gone)
    closest = [one for one in of_kernel if parameters(one.key) == parameters(new.key)]
    return next((some[0] for some in (of_kernel, closest) if len(some) == 1), None)


def moved_workloads(gone: Mapping[Key, WorkloadRecords], new: Mapping[Key, WorkloadRecords]) -> dict[Key, Key]:
    """Of two states of the baselines, old names by the new ones; no record moves twice."""
    left, found = {key: _work(key, records) for key, records in gone.items()}, dict[Key, Key]()
    for key, records in sorted(new.items()):
        origin = origin_of(_work(key, records), left.values())
        if origin is not None and records.static:  # nothing tells what a callable runs
            found[key] = left.pop(origin.key).key
    return found


def _work(key: Key, records: WorkloadRecords) -> Work:
    static = {arch: record for (arch, _), record in sorted(records.static.items())}
    return Work(key, static, next((time.identity for _, time in sorted(records.times.items())), None))


def of_its_kernel(new: Work, gone: Collection[Work]) -> list[Work]:
    """Records of the kernel of ``new`` near it: of its module, or of the same names in another."""
    module, names = new.key.module, (new.key.test, new.key.workload)
    near = [one for one in gone if one.key.module == module or (one.key.test, one.key.workload) == names]
    return [one for one in near if one.kernels == new.kernels]


def _same_execution(old: Work, new: Work) -> bool:
    if old.identity is not None and new.identity is not None and old.identity.code and new.identity.code:
        return old.identity.same_execution(new.identity)
    return any(_alike(old.static[arch], record) for arch, record in new.static.items() if arch in old.static)


def _alike(old: StaticRecord, new: StaticRecord) -> bool:
    launched = old.block is not None and new.block is not None
    same_launch = (old.block, old.dynamic_shared_bytes) == (new.block, new.dynamic_shared_bytes)
    return old.profile.code_hash == new.profile.code_hash and (same_launch or not launched)


def _nearness(was: Key, now: Key) -> tuple[bool, ...]:
    return ((was.module, was.test) == (now.module, now.test), parameters(was) == parameters(now),
            was.workload == now.workload, was.module == now.module, was.test == now.test)  # fmt: skip


def move_command(old: Key, new: Key) -> str:
    """What lets the record follow, with as much else that was renamed alike as there is."""
    return " ".join(["gpuperf baselines mv", *map(shlex.quote, _names(old, new))])


def _names(old: Key, new: Key) -> tuple[str, str]:
    if old.workload != new.workload:
        return str(old), str(new)
    if old.test == new.test and not fixture_of(new.test):  # with a fixture of wider scope no test moves
        return old.module, new.module
    (was, _, its), (now, _, mine) = old.test.partition("["), new.test.partition("[")
    if its == mine:
        return f"{old.module}::{was}", f"{new.module}::{now}"
    return old.node_id, new.node_id
