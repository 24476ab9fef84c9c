"""The two kinds of evidence files in memory: every workload with all of its evidence.  ``documents`` writes them.

Their leaves are defined in ``pytest_gpuperf.model.evidence``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import Session, StaticRecord, TimeRecord


class StaticFile(Record, frozen=True, tag_field="kind", tag="static"):
    """``baselines/sm_90/<module>.json``: what the machine code says, per toolchain, test and workload."""

    target: str
    """Architecture, equal to the folder's name."""
    toolchains: dict[str, dict[str, dict[str, StaticRecord]]]
    """Toolchain (``nvrtc 13.0.88``), then test, then workload."""
    schema: int
    """``schema_version.SCHEMA_VERSION``."""

    @property
    def parts(self) -> list[dict[str, dict[str, StaticRecord]]]:
        """Records by test and workload, of each toolchain."""
        return list(self.toolchains.values())

    def records(self) -> Iterator[tuple[str, str, str, StaticRecord]]:
        """Toolchain, test, workload and what is on record of it."""
        for toolchain, tests in self.toolchains.items():
            for test, workloads in tests.items():
                for workload, record in workloads.items():
                    yield toolchain, test, workload, record


class TimeFile(Record, frozen=True, tag_field="kind", tag="time"):
    """``baselines/nvidia-h200/<module>.json``: times and counters per test and workload, and who took them when."""

    target: str
    """GPU model, equal to the folder's name."""
    sessions: tuple[Session, ...]
    """By date, oldest first; every round names one of them."""
    tests: dict[str, dict[str, TimeRecord]]
    """Test, then workload."""
    schema: int

    @property
    def parts(self) -> list[dict[str, dict[str, TimeRecord]]]:
        """The tests, as the one part that there is."""
        return [self.tests]

    def records(self) -> Iterator[tuple[str, str, str, TimeRecord]]:
        """The same as of static evidence; the toolchain is empty."""
        for test, workloads in self.tests.items():
            for workload, record in workloads.items():
                yield "", test, workload, record


EvidenceFile = Union[StaticFile, TimeFile]  # noqa: UP007  (msgspec reads it at run time, on Python 3.10 too)
