"""Which kernels of the example suite each tool has to see, and by which tests, read off the static baselines."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection
from pathlib import Path

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key, StaticRecord

ARCH = "sm_90"
SUITE = "example_suite"
NEVER_LAUNCHED = {
    "sync_divergent": "undefined behaviour, compiled to be looked at",
    "dive_from_queue_racing": "lacks a barrier, compiled to be looked at",
}
"""Kernels that no test launches, on purpose."""


@dataclasses.dataclass(frozen=True)
class SharedKernel:
    """A kernel that uses shared memory."""

    name: str
    shared_bytes: int
    """Of a block, static and dynamic, at most."""
    tests: tuple[str, ...]
    """Node ids of tests that launch it: the small ones, or those that time it where there is no small one."""


def shared_kernels(baselines: Path, files: Collection[str] = ()) -> list[SharedKernel]:
    """Every kernel with static or dynamic shared memory that is launched at all, by name; of these test files."""
    records: dict[str, list[tuple[Key, StaticRecord]]] = {}
    for key, record in _of_files(baselines, files):
        records.setdefault(record.kernel, []).append((key, record))
    found = []
    for name, known in sorted(records.items()):
        size = max(record.profile.shared_bytes + record.dynamic_shared_bytes for _, record in known)
        if size == 0 or name in NEVER_LAUNCHED:
            continue
        small = [key.node_id for key, record in known if record.block is None]
        timed = [key.node_id for key, record in known if record.block is not None]
        found.append(SharedKernel(name, size, tuple(dict.fromkeys(small or timed))))
    return found


def timed_kernels(baselines: Path, files: Collection[str] = ()) -> set[str]:
    """Names of the kernels that are workloads of their own: those that a run of these test files has to launch."""
    return {record.kernel for _, record in _of_files(baselines, files) if record.block is not None}


def _of_files(baselines: Path, files: Collection[str]) -> list[tuple[Key, StaticRecord]]:
    """The records of these test files, of all where there are none."""
    return [one for one in _records(baselines) if not files or one[0].module.removeprefix(f"{SUITE}/") in files]


@functools.cache
def _records(baselines: Path) -> tuple[tuple[Key, StaticRecord], ...]:
    """Static records of the suite, read once: nothing writes baselines meanwhile."""
    store = BaselineStore(baselines)
    return tuple(
        (key, record)
        for target, module in store.places()
        if target == ARCH and module.startswith(f"{SUITE}/")
        for (key, _), record in store.load(target, module).items()
    )
