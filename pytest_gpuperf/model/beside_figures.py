"""What a workload costs beside its time on the GPU: memory, time of the CPU, and its error."""

from __future__ import annotations

import msgspec

from pytest_gpuperf.model.base_record import Record


class HostTime(Record, frozen=True):
    """A time of the CPU over that of fixed work of this plugin that was done beside it."""

    ratios: tuple[float, ...]
    """One for each process that took it: the median of its blocks."""
    time_ns: float
    """What one run took there, nanoseconds; the median of the processes."""
    cpu: str
    """Model of the CPU."""
    made_by: str
    """What else it depends on: Python, the fixed work and the driver."""


class Beside(Record, frozen=True):
    """Figures of one workload; None where it was not asked for."""

    memory_bytes: int | None = None
    """Device memory that one run needs at most: arrays of a launch, and what it allocates."""
    accuracy: float | None = None
    """The error that the test's ``accuracy=`` returned."""
    host: HostTime | None = None
    """From the call of the workload to its return."""

    def updated_by(self, newer: Beside) -> Beside:
        """These figures, each in its newer state where there is one."""
        found = {name: value for name, value in msgspec.structs.asdict(newer).items() if value is not None}
        return msgspec.structs.replace(self, **found)


def updated(old: Beside | None, newer: Beside | None) -> Beside | None:
    """The figures of both, the newer one's winning: a recording without a figure keeps what is on record."""
    return newer if old is None else old if newer is None else old.updated_by(newer)
