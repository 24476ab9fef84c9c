"""Evidence of another revision's tests, in the place of baselines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import unpacked
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.timing.process_reference import TestEnded


class RevisionBaselines(BaselineStore):
    """Evidence of the revision's tests so far: in memory, and in a folder for other processes."""

    def __init__(self, root: Path, again: Callable[[str], None]) -> None:
        """``again`` is called with the node id of a test whose workload is missing."""
        super().__init__(root)
        self._again = again
        self._code: dict[str, bytes] = {}
        self._unwritten: dict[str, Update] = {}

    def add(self, node_id: str, update: Update) -> None:
        for place, new in update.by_file().items():
            self._loaded[place] = {**self._loaded.get(place, {}), **new}
            self._tests.pop(place, None)
        self._places, self._workloads = None, None
        self._code |= {hashlib.sha256(cubin).hexdigest(): cubin for cubin in update.cubins}
        self._unwritten[node_id] = update

    def of_test(self, target: str, key: Key, toolchain: str = "") -> Mapping[str, Any]:
        if key.workload and key.workload not in super().of_test(target, key, toolchain):
            self._again(key.node_id)
        return super().of_test(target, key, toolchain)

    def paths(self) -> Iterable[str]:
        return [layout.record_file(*place) for place, records in self._loaded.items() if records]

    def content(self, path: str) -> bytes | None:  # noqa: ARG002 all is in memory
        return None

    def cubin(self, sha256: str) -> bytes:
        return self._code[sha256] if sha256 in self._code else super().cubin(sha256)

    def save(self, with_code: str) -> None:
        """Write new evidence to the folder, with machine code for a single test: packing it takes long."""
        new, self._unwritten = self._unwritten, {}
        whole = [one if node_id == with_code else _without_code(one) for node_id, one in new.items()]
        BaselineStore(self.root).write(Update(
            static={place: record for one in whole for place, record in one.static.items()},
            time={place: record for one in whole for place, record in one.time.items()},
            cubins=[cubin for one in whole for cubin in one.cubins],
        ))  # fmt: skip


def _without_code(update: Update) -> Update:
    static = {place: msgspec.structs.replace(record, cubin="") for place, record in update.static.items()}
    times = {place: msgspec.structs.replace(record, cubin="") for place, record in update.time.items()}
    return Update(static=static, time=times)


def update_of(ended: TestEnded) -> Update:
    """The evidence of a test of the revision, as an update would record it; its time is a single round."""
    test = ended.evidence
    assert test is not None
    cubins = unpacked([test])
    static: dict[tuple[str, str, Key], StaticRecord] = {}
    times: dict[tuple[str, Key], TimeRecord] = {}
    for work in test.workloads:
        for arch, record in work.static.items():
            cubin = record.cubin if record.cubin in cubins else ""
            static[arch, work.toolchain, work.key] = msgspec.structs.replace(record, cubin=cubin)
        if work.time is not None and test.device is not None and not ended.failed:
            cubin = work.time.cubin if work.time.cubin in cubins else ""
            times[test.device.slug, work.key] = msgspec.structs.replace(
                work.time, cubin=cubin, secondary=work.secondary, session=test.session
            )
    return Update(static=static, time=times, cubins=list(cubins.values()))
