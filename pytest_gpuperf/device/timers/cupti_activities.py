"""Records that a CUPTI timer reads: pieces of GPU work, and the tags of the API calls that launched them.

``BoundActivities`` takes each record as the object that cupti-python makes of it: always there, and slow, some 50 us
per record.  The fast source is ``cupti_buffers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

MEMCPY, MEMSET = "[memcpy]", "[memset]"
"""Stand for the names of work that has none."""
BUFFER_BYTES = 1 << 20
"""CUPTI clears each buffer and asks for more when it is full: small ones are cheap."""


class Activity(NamedTuple):
    """One piece of GPU work as CUPTI recorded it."""

    correlation: int
    """Number of the API call that launched it."""
    start_ns: int
    end_ns: int
    name: str


@dataclass(frozen=True)
class RecordKinds:
    """The numbers of the kinds that matter, out of the binding's enumerations."""

    kernel: int
    memcpy: int
    memset: int
    tag: int
    external: int
    """Tags of other users of CUPTI (PyTorch has 0 and 1 of the custom ones) are of another external kind."""

    @classmethod
    def of(cls, cupti: Any) -> RecordKinds:
        kinds = cupti.ActivityKind
        return cls(
            kernel=int(kinds.CONCURRENT_KERNEL),
            memcpy=int(kinds.MEMCPY),
            memset=int(kinds.MEMSET),
            tag=int(kinds.EXTERNAL_CORRELATION),
            external=int(cupti.ExternalCorrelationKind.CUSTOM2),
        )


class ActivitySource(Protocol):
    """Source of the records of a measurement.  A process has one that is current: the last one started."""

    activities: list[Activity]
    """Read since the start, in no particular order."""
    tags: dict[int, int]
    """Tag of each tagged API call, by its correlation id."""

    def start(self) -> None:
        """Forget what was read, and take CUPTI's records from now on.  Raises the binding's ``cuptiError``."""

    def flush(self, forced: int) -> None:
        """Have CUPTI hand over its records, with 1 even incomplete ones.  Raises the binding's ``cuptiError``."""


class BoundActivities:
    """``ActivitySource`` by cupti-python's own callbacks."""

    def __init__(self, cupti: Any) -> None:
        self._cupti = cupti
        self._kinds = RecordKinds.of(cupti)
        self._unnamed = {self._kinds.memcpy: MEMCPY, self._kinds.memset: MEMSET}
        self.activities: list[Activity] = []
        self.tags: dict[int, int] = {}

    def start(self) -> None:
        """See ``ActivitySource``; registers every time, because another source may have taken the callbacks."""
        self.activities.clear()
        self.tags.clear()
        self._cupti.activity_register_callbacks(_request_buffer, self._buffer_completed)

    def flush(self, forced: int) -> None:
        self._cupti.activity_flush_all(forced)

    def _buffer_completed(self, records: Sequence[Any]) -> None:
        """Called by CUPTI, possibly from its own thread; records are valid only during the call."""
        kernel, tag, unnamed = self._kinds.kernel, self._kinds.tag, self._unnamed
        for record in records:
            kind = int(record.kind)  # every attribute read costs microseconds
            if kind == kernel:
                self.activities.append(Activity(record.correlation_id, record.start, record.end, str(record.name)))
            elif kind in unnamed:
                self.activities.append(Activity(record.correlation_id, record.start, record.end, unnamed[kind]))
            elif kind == tag and record.external_kind == self._kinds.external:
                self.tags[record.correlation_id] = record.external_id


def _request_buffer() -> tuple[int, int]:
    """Size of the next buffer, and no bound on its records."""
    return BUFFER_BYTES, 0
