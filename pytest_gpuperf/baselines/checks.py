"""Conditions on every baseline beyond its types, checked when it is read and again before it is written.

Judges take logarithms of times, reports print names, cubins are found by their hash: the limits make that safe.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from pytest_gpuperf.baselines.baseline_errors import has_unprintable, quoted
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.layout import is_sha256
from pytest_gpuperf.model.beside_figures import Beside, HostTime
from pytest_gpuperf.model.evidence import Session, StaticRecord, TimeRecord
from pytest_gpuperf.model.timed_round import RecordedRound

MIN_TIME_NS = 1e-3
MAX_TIME_NS = 1e15
"""Eleven days: any longer, and ratios of times could overflow."""
MAX_INTEGER = 2**63 - 1
MAX_RATIO = 1e9
"""Of a time of the CPU over that of fixed work."""
MAX_NAME = 200
"""Characters of a CPU's or a compiler's name."""


class BadContentError(ValueError):
    """Names what is wrong and where.  Callers turn it into the error of their own direction, read or write."""


def check(file: EvidenceFile) -> None:
    """Raises ``BadContentError`` if a record breaks a rule of this module; of plain values see ``check_plain``."""
    if isinstance(file, StaticFile):
        seen: set[int] = set()
        for toolchain, test, workload, record in file.records():
            _check_static(f"{toolchain}, {test} [{workload}]", record, seen)
    else:
        _check_sessions(file)
        known = {session.id for session in file.sessions}
        for _, test, workload, timed in file.records():
            _check_time(f"{test} [{workload}]", timed, known)


_NOT_PLAIN = re.compile(rb"[\\\x7f]|null|(?<=[:,\[-])[0-9]{19}")
"""In JSON: an escaped character, one that is not printed, no finite number, an integer that may be beyond 64 bits."""


def _is_plain(tree: Any) -> bool:
    """True if one look at all of it shows that ``check_plain`` has nothing to say; False if that has to look closer."""
    try:
        content = msgspec.json.encode(tree)
    except (UnicodeEncodeError, OverflowError):
        return False
    return content.isascii() and _NOT_PLAIN.search(content) is None


def check_plain(tree: Any) -> None:
    """Raises ``BadContentError`` for text that no terminal should see and numbers that are not finite 64-bit ones."""
    if not _is_plain(tree):
        check_each(tree, "$")


def check_each(tree: Any, where: str) -> None:
    """The same, value by value; ``where`` says where they are."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if has_unprintable(key):
                raise _unprintable(key, where)
            if _is_not_plain(value):
                check_each(value, f"{where}.{key}")
    elif isinstance(tree, (list, tuple)):
        for index, value in enumerate(tree):
            if _is_not_plain(value):
                check_each(value, f"{where}[{index}]")
    elif isinstance(tree, str) and has_unprintable(tree):
        raise _unprintable(tree, where)
    elif isinstance(tree, float) and not math.isfinite(tree):
        raise BadContentError(f"{quoted(where, 200)} is {tree}, which is not a finite number")
    elif isinstance(tree, int) and abs(tree) > MAX_INTEGER:
        raise BadContentError(f"{quoted(where, 200)} is beyond 64 bits")


def _is_not_plain(value: Any) -> bool:
    """Whether a value has to be looked into, or named: most are not, and need no words for their place."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, int):
        return abs(value) > MAX_INTEGER
    return has_unprintable(value) if isinstance(value, str) else bool(value)


def _unprintable(text: str, where: str) -> BadContentError:
    return BadContentError(f"{quoted(where, 200)} has the text '{quoted(text)}' with control characters")


def _check_static(where: str, record: StaticRecord, seen: set[int]) -> None:
    """``seen``: profiles that were checked with another record that shares them."""
    counts = {"dynamic_shared_bytes": record.dynamic_shared_bytes}
    if id(record.profile) not in seen:
        seen.add(id(record.profile))
        profile = msgspec.structs.asdict(record.profile)
        counts |= {name: value for name, value in profile.items() if isinstance(value, int)}
        counts |= {f"opcodes.{name}": value for name, value in record.profile.opcodes.items()}
    for name, value in counts.items():
        if value < 0:
            raise _bad(where, f"{name} is {value}, below zero")
    _check_cubin(where, record.cubin)
    if record.occupancy is not None and not 0 <= record.occupancy.fraction <= 1:
        raise _bad(where, f"occupancy.fraction is {record.occupancy.fraction}, outside 0 to 1")


def _check_cubin(where: str, sha256: str) -> None:
    if sha256 and not is_sha256(sha256):
        raise _bad(where, f"cubin is '{quoted(sha256)}', which is not a SHA-256")


def _check_sessions(file: TimeFile) -> None:
    ids = [session.id for session in file.sessions]
    if len(set(ids)) != len(ids):
        raise BadContentError("two sessions have the same id (a merge kept both: delete one, or give it its own id)")
    for session in file.sessions:
        _check_session(session)


def _check_session(session: Session) -> None:
    for name, value in (("tick_ns", session.tick_ns), ("overhead_ns", session.overhead_ns)):
        if abs(value) > MAX_TIME_NS:
            raise _bad(f"session {session.id}", f"{name} is {value}, out of range")
    if session.tick_ns < 0:
        raise _bad(f"session {session.id}", f"tick_ns is {session.tick_ns}, below zero")


def _check_time(where: str, record: TimeRecord, sessions: set[str]) -> None:
    _check_cubin(where, record.cubin)
    if record.beside is not None:
        _check_beside(f"{where}, beside", record.beside)
    if not record.rounds:
        raise _bad(where, "there are no rounds")
    for index, entry in enumerate(record.rounds):
        if entry.session not in sessions:
            raise _bad(where, f"round {index} belongs to session '{quoted(entry.session)}', which is not in the file")
        _check_round(f"{where}, round {index}", entry)


def _check_beside(where: str, beside: Beside) -> None:
    for name, value in (("memory_bytes", beside.memory_bytes), ("accuracy", beside.accuracy)):
        if value is not None and value < 0:
            raise _bad(where, f"{name} is {value}, below zero")
    if beside.host is not None:
        _check_host_time(f"{where}, host", beside.host)


def _check_host_time(where: str, time: HostTime) -> None:
    if not time.ratios or not all(1 / MAX_RATIO <= ratio <= MAX_RATIO for ratio in time.ratios):
        raise _bad(where, "it has no ratios, or one that is no ratio of times")
    _check_time_ns(where, "its time", time.time_ns)
    if max(len(time.cpu), len(time.made_by)) > MAX_NAME:
        raise _bad(where, f"a name has more than {MAX_NAME} characters")


def _check_round(where: str, entry: RecordedRound) -> None:
    _check_time_ns(where, "a time", entry.midmean)
    if entry.sm_clock_mhz is not None and min(entry.sm_clock_mhz) < 0:
        raise _bad(where, f"its SM clock is {min(entry.sm_clock_mhz)} MHz, below zero")


def _check_time_ns(where: str, what: str, time_ns: float) -> None:
    if not MIN_TIME_NS <= time_ns <= MAX_TIME_NS:
        raise _bad(where, f"{what} is outside {MIN_TIME_NS:g} to {MAX_TIME_NS:g} ns")


def _bad(where: str, problem: str) -> BadContentError:
    return BadContentError(f"{quoted(where, 200)}: {problem}")
