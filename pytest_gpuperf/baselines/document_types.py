"""What lies in an evidence file, as typed records: each fact once, and a line for what changes together.

In memory every workload has all of its evidence (``file_types``); ``documents`` converts.  The names of tests are split
before their parameters, so that a renamed test is one line.
"""

from __future__ import annotations

from typing import Union

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import CacheMode, Figures, Occupancy, Session
from pytest_gpuperf.model.timer_names import TimerName


class Hashes(Record, frozen=True):
    """SHA-256 of what makes a kernel."""

    code: str
    """``StaticProfile.code_hash``"""
    source: str = ""
    """Of source, headers and options."""
    cubin: str = ""


class StaticCode(Record, frozen=True):
    """One machine code, and what it is under the launches that its users have."""

    figures: Figures
    hashes: Hashes
    kernel: str | None = None
    """None where it is the label that users know it by."""
    symbol: str = ""
    occupancy: dict[str, Occupancy] = {}
    """By block and dynamic shared memory: ``256x1x1``, ``256x1x1+4096``."""


class Use(Record, frozen=True):
    """A workload's launch of a machine code."""

    code: str = ""
    """Label of the code; empty where it is the workload's name."""
    block: tuple[int, int, int] | None = None
    grid: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int = 0
    config: str = ""
    """What an autotuner chose for this workload."""


class StaticPart(Record, frozen=True):
    """Evidence of one toolchain."""

    codes: dict[str, StaticCode]
    """By label: the kernel's name, and, of several codes of that name, of whom it is first: ``scale [32]``."""
    tests: dict[str, dict[str, dict[str, Use]]]
    """Test without parameters, then its parameters (``[32]``, or nothing), then workload."""


class StaticDocument(Record, frozen=True, tag_field="kind", tag="static"):
    """``baselines/sm_90/<module>.json``: what the machine code says."""

    schema: int
    target: str
    """Architecture, equal to the folder's name."""
    toolchains: dict[str, StaticPart]
    """By name: ``nvrtc 13.0.88``."""


class TimedCode(Record, frozen=True):
    """One machine code that was timed.  ``code`` is empty for a callable without a cubin of its own."""

    code: str = ""
    source: str = ""
    cubin: str = ""
    toolchain: str = ""
    kernel: str | None = None
    """As above; empty for a callable."""
    symbol: str = ""


class SessionRounds(Record, frozen=True):
    """Rounds of one workload in one session."""

    midmeans: list[float]
    """In the order they were taken; nanoseconds per launch."""
    sm_clock_mhz: list[tuple[int, int] | None] | None = None
    """Before and after each round: of all rounds, or one pair for all of them; None where no clock was read."""


class TimeUse(Record, frozen=True):
    """Time evidence of one workload."""

    code: str
    """Label of what ran."""
    launch: str
    timer: TimerName
    cache: CacheMode
    rounds: dict[str, SessionRounds]
    """By session."""
    arguments: tuple[str, ...] = ()
    block: tuple[int, int, int] | None = None
    grid: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int = 0
    bytes: int | None = None
    flops: int | None = None
    counters: dict[str, Union[float, dict[str, float]]] = {}  # noqa: UP007
    """By metric; a name with a ``*`` has what stands for it in several names."""
    counter_ranges: dict[str, tuple[float, float]] = {}
    config: str = ""
    """As in ``Use``."""
    beside: Beside | None = None


class TimeDocument(Record, frozen=True, tag_field="kind", tag="time"):
    """``baselines/nvidia-h200/<module>.json``: times and counters, and who took them when."""

    schema: int
    target: str
    """GPU model, equal to the folder's name."""
    sessions: tuple[Session, ...]
    codes: dict[str, TimedCode]
    tests: dict[str, dict[str, dict[str, TimeUse]]]
    """As in ``StaticPart``."""


Document = Union[StaticDocument, TimeDocument]  # noqa: UP007
