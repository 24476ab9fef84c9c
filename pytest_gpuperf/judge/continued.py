"""Which record a new workload continues under another name: of the same code, launched alike, or of the same kernel."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping

import msgspec

from pytest_gpuperf.model.evidence import Identity, Key, StaticRecord
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.model.workload_records import WorkloadRecords


def parameters(key: Key) -> str:
    """Those of its test, as the node id ends: ``[1024]``; empty without any."""
    return key.test[key.test.find("[") :] if "[" in key.test else ""


# --- two states of the baselines -----------------------------------------------------------------

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
        old_of = _grouped({key: gone[key] for key in gone if key not in taken}, common)
        new_of = _grouped({key: new[key] for key in new if key not in found}, common)
        single = [trait for trait, keys in new_of.items() if len(keys) == len(old_of.get(trait, ())) == 1]
        pairs = {(new_of[trait][0], old_of[trait][0]) for trait in single}
        pairs = {(key, old) for key, old in pairs if _may_be_one(gone[old], new[key])}
        claims = Counter(key for pair in pairs for key in pair)
        found |= {key: old for key, old in pairs if claims[key] == claims[old] == 1}
    return found


def _grouped(workloads: Mapping[Key, WorkloadRecords], common: Callable[[Key], Hashable]) -> dict[Hashable, list[Key]]:
    """Names by what they have in common, together with each execution of theirs."""
    table: dict[Hashable, list[Key]] = defaultdict(list)
    for key, records in workloads.items():
        for execution in _executions(records):
            table[common(key), execution].append(key)
    return table


def _executions(records: WorkloadRecords) -> set[Hashable]:
    """The machine code for each target with its launch; none of a callable, which may run anything."""
    static = {
        (arch, one.profile.code_hash, one.block, one.grid, one.dynamic_shared_bytes)
        for (arch, _), one in records.static.items()
    }
    timed = {(gpu, one.identity) for gpu, one in records.times.items()}
    return {*static, *((gpu, one.code, one.launch, one.arguments) for gpu, one in timed if one.code)}


def _may_be_one(old: WorkloadRecords, new: WorkloadRecords) -> bool:
    """False if a GPU model timed both, and they did not run the same."""
    both = old.times.keys() & new.times.keys()
    return all(old.times[gpu].identity.same_execution(new.times[gpu].identity) for gpu in both)


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


# --- one new workload of a run -------------------------------------------------------------------


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
    return " ".join(["gpuperf mv", *map(shlex.quote, _names(old, new))])


def _names(old: Key, new: Key) -> tuple[str, str]:
    if old.workload != new.workload:
        return str(old), str(new)
    if old.test == new.test and not fixture_of(new.test):  # with a fixture of wider scope no test moves
        return old.module, new.module
    (was, _, its), (now, _, mine) = old.test.partition("["), new.test.partition("[")
    if its == mine:
        return f"{old.module}::{was}", f"{new.module}::{now}"
    return old.node_id, new.node_id
