"""Which record that lost its test a new workload is probably the continuation of."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Mapping, Sequence

from pytest_gpuperf.model.evidence import Identity, Key, StaticRecord
from pytest_gpuperf.model.fixture_names import fixture_of


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

    @property
    def parameters(self) -> str:
        """Those of its test, as the node id ends."""
        return self.key.test[self.key.test.find("[") :] if "[" in self.key.test else ""


def origin_of(new: Work, gone: Collection[Work]) -> Work | None:
    """The record whose machine code and launch are those of ``new``; else the only one of its kernel.

    The same kernel counts within a module, and in another one for a test and workload of the same names.  Of several
    that would do, the one with the same parameters or names comes first; several of a kernel that differ in
    nothing but their code are no answer.
    """
    alike = [one for one in gone if _same_execution(one, new)]
    if alike:
        return max(sorted(alike, key=lambda one: one.key), key=lambda one: _nearness(one, new))
    of_kernel = of_its_kernel(new, gone)
    closest = [one for one in of_kernel if one.parameters == new.parameters]
    for candidates in (of_kernel, closest):
        if len(candidates) == 1:
            return candidates[0]
    return None


def of_its_kernel(new: Work, gone: Collection[Work]) -> list[Work]:
    """Records of the kernel of ``new`` near it: of its module, or of the same names in another."""
    return [one for one in gone if one.kernels == new.kernels and _near(one.key, new.key)]


def _same_execution(old: Work, new: Work) -> bool:
    if old.identity is not None and new.identity is not None and old.identity.code and new.identity.code:
        return old.identity.same_execution(new.identity)
    return any(_alike(old.static[arch], record) for arch, record in new.static.items() if arch in old.static)


def _alike(old: StaticRecord, new: StaticRecord) -> bool:
    if old.profile.code_hash != new.profile.code_hash:
        return False
    launched = old.block is not None and new.block is not None
    return not launched or (old.block, old.dynamic_shared_bytes) == (new.block, new.dynamic_shared_bytes)


def _nearness(old: Work, new: Work) -> tuple[bool, ...]:
    was, now = old.key, new.key
    same_test = (was.module, was.test) == (now.module, now.test)
    return (same_test, old.parameters == new.parameters, was.workload == now.workload, was.module == now.module,
            was.test == now.test)  # fmt: skip


def _near(old: Key, new: Key) -> bool:
    return old.module == new.module or (old.test, old.workload) == (new.test, new.workload)


def move_command(old: Key, new: Key) -> str:
    """What lets the record follow, with as much else that was renamed alike as there is."""
    return " ".join(["gpuperf mv", *map(shlex.quote, _names(old, new))])


def _names(old: Key, new: Key) -> Sequence[str]:
    if old.workload != new.workload:
        return str(old), str(new)
    if old.test == new.test and not fixture_of(new.test):  # with a fixture of wider scope no test moves
        return old.module, new.module
    (was, _, its), (now, _, mine) = old.test.partition("["), new.test.partition("[")
    if its == mine:
        return f"{old.module}::{was}", f"{new.module}::{now}"
    return old.node_id, new.node_id
