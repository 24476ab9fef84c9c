"""Which workload, gone under its old name, is the one that is new under another: the same code, launched alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

import msgspec

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.workload_records import WorkloadRecords


def parameters(key: Key) -> str:
    """Those of its test, as the node id ends: ``[1024]``; empty without any."""
    return key.test[key.test.find("[") :] if "[" in key.test else ""


_CLOSENESS: tuple[Callable[[Key], Hashable], ...] = (
    lambda key: (key.test, key.workload),
    lambda key: (key.module, parameters(key), key.workload),
    lambda key: (parameters(key), key.workload),
    lambda key: (key.module, key.test),
    lambda _: (),
)
"""What two names must have in common, the closest first: another module, another test, both, another workload, all."""


def moved_workloads(gone: Mapping[Key, WorkloadRecords], new: Mapping[Key, WorkloadRecords]) -> dict[Key, Key]:
    """Old names by the new ones.  No record moves twice, and where several would do, none does."""
    found: dict[Key, Key] = {}
    for common in _CLOSENESS:
        taken = set(found.values())
        old_of = _by_trait(((key, gone[key]) for key in gone if key not in taken), common)
        new_of = _by_trait(((key, new[key]) for key in new if key not in found), common)
        pairs: dict[Key, set[Key]] = defaultdict(set)
        for trait, keys in new_of.items():
            olds = old_of.get(trait, [])
            if len(keys) == len(olds) == 1 and _may_be_one(gone[olds[0]], new[keys[0]]):
                pairs[keys[0]].add(olds[0])
        claims = Counter(old for olds in pairs.values() for old in olds)
        for key, those in pairs.items():
            if len(those) == 1 and claims[old := those.pop()] == 1:
                found[key] = old
    return found


def renamed_and_changed(gone: Mapping[Key, WorkloadRecords], new: Mapping[Key, WorkloadRecords]) -> dict[Key, Key]:
    """Old names by the new ones, where figures of the machine code changed along: the only one of its kernel each time.

    Of ``moved_workloads`` what is left.  In the same module and with the same parameters; a callable has no kernel.
    """
    old_of, new_of = _by_kernel(gone), _by_kernel(new)
    pairs = [(olds[0], new_of[what][0]) for what, olds in old_of.items() if len(olds) == len(new_of[what]) == 1]
    return {key: old for old, key in pairs if _figures_differ(gone[old], new[key])}


def _by_kernel(workloads: Mapping[Key, WorkloadRecords]) -> dict[tuple[str, str, str], list[Key]]:
    table: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key, records in workloads.items():
        if records.static:
            table[key.module, parameters(key), records.kernel].append(key)
    return table


def _figures_differ(old: WorkloadRecords, new: WorkloadRecords) -> bool:
    both = ((old.static[at].profile, new.static[at].profile) for at in old.static.keys() & new.static.keys())
    return any(msgspec.structs.replace(was, code_hash=now.code_hash) != now for was, now in both)


def _by_trait(
    workloads: Iterable[tuple[Key, WorkloadRecords]], common: Callable[[Key], Hashable]
) -> dict[Hashable, list[Key]]:
    """Names by what they have in common, together with each execution of theirs."""
    table: dict[Hashable, list[Key]] = defaultdict(list)
    for key, records in workloads:
        for execution in _executions(records):
            table[common(key), execution].append(key)
    return table


def _executions(records: WorkloadRecords) -> set[Hashable]:
    """The machine code for each target with its launch; none of a callable, which may run anything."""
    static = {
        (arch, one.profile.code_hash, one.block, one.grid, one.dynamic_shared_bytes)
        for (arch, _), one in records.static.items()
    }
    timed = {
        (gpu, one.identity.code, one.identity.launch, one.identity.arguments)
        for gpu, one in records.times.items()
        if one.identity.code
    }
    return {*static, *timed}


def _may_be_one(old: WorkloadRecords, new: WorkloadRecords) -> bool:
    """False if a GPU model timed both, and they did not run the same."""
    return all(
        one.identity.same_execution(new.times[gpu].identity) for gpu, one in old.times.items() if gpu in new.times
    )
