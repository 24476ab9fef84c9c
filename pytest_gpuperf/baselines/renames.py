"""Which recorded workload a new one continues under another name: one with the same machine code."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import WorkloadRecords


def renamed_workloads(
    before: Mapping[Key, WorkloadRecords], after: Mapping[Key, WorkloadRecords], elsewhere: Collection[Key] = ()
) -> dict[Key, Key]:
    """Names of ``before`` by those of ``after``; no record moves twice.

    ``elsewhere`` are workloads of both that are in neither mapping.
    """
    gone = {key: records for key, records in before.items() if key not in after and key not in elsewhere}
    found: dict[Key, Key] = {}
    for key in sorted(after.keys() - before.keys()):
        origin = None if key in elsewhere else origin_of(key, after[key], gone)
        if origin is not None:
            found[key] = origin
            del gone[origin]
    return found


def origin_of(key: Key, new: WorkloadRecords, gone: Mapping[Key, WorkloadRecords]) -> Key | None:
    """The workload with the machine code of ``new``, launched alike; of several the one whose name is nearest."""
    alike = sorted(one for one, old in gone.items() if _same_code(old, new))
    return max(alike, key=lambda one: _nearness(one, key), default=None)


def of_same_kernel(key: Key, new: WorkloadRecords, gone: Mapping[Key, WorkloadRecords]) -> list[Key]:
    """Workloads near ``key`` that launch a kernel of the same name, so that ``new`` may be any of them.

    Near are those of its test module, and in another one those of the same test and workload names.
    """
    names = (key.test, key.workload)
    near = (one for one in gone if one.module == key.module or (one.test, one.workload) == names)
    return sorted(one for one in near if new.kernel and gone[one].kernel == new.kernel)


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
    return " ".join(["gpuperf baselines mv", *map(shlex.quote, _names(old, new))])


def _names(old: Key, new: Key) -> tuple[str, str]:
    if old.workload != new.workload:
        return str(old), str(new)
    if old.test == new.test:
        return old.module, new.module
    if _parameters(old) != _parameters(new):
        return old.node_id, new.node_id
    return old.node_id.partition("[")[0], new.node_id.partition("[")[0]
