"""The one model of baselines: the records of a test module for one target, each a line of its file.

A file has a head and then a line for each record, with an empty line between: git merges changes of neighbouring
records only where an unchanged line lies between them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from pytest_gpuperf.model.evidence import Key, Record, StaticRecord
from pytest_gpuperf.model.time_record import Session, TimeRecord

SCHEMA_VERSION = 7
"""Of the files of records; a file of another version is refused."""


class Head(Record, frozen=True):
    """The first line of a file."""

    schema: int
    """``SCHEMA_VERSION``"""
    target: str
    """Architecture or GPU model, equal to the folder's name."""


class StaticLine(Record, frozen=True):
    """What the machine code of one workload says, by one compiler."""

    test: str
    workload: str
    toolchain: str
    """``nvrtc 13.0.88``"""
    record: StaticRecord


class Recording(Session, frozen=True, kw_only=True):
    """A session, with the workload's times in it."""

    midmeans: tuple[float, ...]
    """Of its rounds, in the order they were taken; nanoseconds per launch."""


class TimeLine(Record, frozen=True):
    """The time and the counters of one workload on one GPU model."""

    test: str
    workload: str
    sessions: tuple[Recording, ...]
    """Oldest first."""
    record: TimeRecord
    """Without its rounds, which the sessions have."""


class Name(NamedTuple):
    """What tells the records of a file apart."""

    test: str
    workload: str
    toolchain: str = ""
    """Empty for a time."""

    def key(self, module: str) -> Key:
        """The workload."""
        return Key(module=module, test=self.test, workload=self.workload)


R = TypeVar("R", StaticRecord, TimeRecord)


@dataclasses.dataclass(frozen=True)
class RecordFile(Generic[R]):
    """The records of one test module for one target, in memory."""

    target: str
    records: Mapping[Name, R]
    sessions: Mapping[str, Session] = dataclasses.field(default_factory=dict)
    """Those that the rounds of times name, by id."""

    @cached_property
    def tests(self) -> dict[str, dict[str, dict[str, R]]]:
        """The records by toolchain (empty for times), test and workload."""
        found: dict[str, dict[str, dict[str, R]]] = {}
        for name, record in self.records.items():
            found.setdefault(name.toolchain, {}).setdefault(name.test, {})[name.workload] = record
        return found

    def keys(self, module: str) -> Iterator[Key]:
        """The workloads, each once."""
        yield from dict.fromkeys(name.key(module) for name in self.records)
