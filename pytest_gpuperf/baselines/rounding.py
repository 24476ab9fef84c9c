"""Rounding of times, once, when they are recorded, to the digits that the measured noise leaves meaningful."""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.judge.counters import Counts
from pytest_gpuperf.model.time_record import Beside, HostTime, RecordedRound, Session, TimeRecord

MIN_DIGITS = 4
MAX_DIGITS = 7
SUMS = (".sum", ".max", ".min")
"""Ends of metrics that count; others are ratios, which no gate compares exactly."""
NOISE_PARTS = 20
"""A rounding error stays below this fraction (one twentieth) of the noise, where ``MAX_DIGITS`` allows."""


def round_record(record: TimeRecord, sessions: dict[str, Session]) -> TimeRecord:
    """The record as it will be stored.  Each round's session must be in ``sessions``."""
    rounds = tuple(_round(entry, sessions[entry.session].tick_ns) for entry in record.rounds)
    beside = record.beside and rounded_beside(record.beside)
    stored = msgspec.structs.replace(record, rounds=rounds, beside=beside)
    return with_counts(stored, Counts.of(record))


def rounded_beside(beside: Beside) -> Beside:
    """An error to six digits, ratios to five, their times to four."""
    accuracy = None if beside.accuracy is None else significant(beside.accuracy, 6)
    return msgspec.structs.replace(beside, accuracy=accuracy, host=beside.host and _host_time(beside.host))


def _host_time(time: HostTime) -> HostTime:
    ratios = tuple(significant(ratio, 5) for ratio in time.ratios)
    return msgspec.structs.replace(time, ratios=ratios, time_ns=significant(time.time_ns, 4))


def with_counts(record: TimeRecord, counts: Counts) -> TimeRecord:
    """The record with these counters in place of its own, as they will be stored."""
    ranges = {name: (_figure(least, 9), _figure(most, 9)) for name, (least, most) in counts.ranges.items()}
    values = {name: _figure(value, 9 if name.endswith(SUMS) else 6) for name, value in counts.values.items()}
    return msgspec.structs.replace(record, counters=values, counter_ranges=ranges)


def _figure(value: float, digits: int) -> float:
    """Counts stay exact, for exactly is how they are compared; of a ratio six digits are more than two takes share."""
    return float(value) if float(value).is_integer() else significant(value, digits)


def round_session(session: Session) -> Session:
    """Tick and overhead to four digits: they are measured, and last bits differ from run to run."""
    return msgspec.structs.replace(
        session,
        tick_ns=significant(session.tick_ns, 4),
        overhead_ns=significant(session.overhead_ns, 4),
    )


def _round(entry: RecordedRound, tick_ns: float) -> RecordedRound:
    kept = entry.recorded()
    return msgspec.structs.replace(kept, midmean=round_time(kept.midmean, kept.iqr or tick_ns), iqr=0.0)


def round_time(time_ns: float, noise_ns: float) -> float:
    """``time_ns`` to the decimal place whose rounding error is below a twentieth of ``noise_ns``, but to at least 4 and
    at most 7 significant digits.  Not positive or not finite times, and noise of zero, are left to the checks."""
    if not (0 < time_ns < math.inf and 0 < noise_ns < math.inf):
        return significant(time_ns, MAX_DIGITS)
    # Half a unit of the place is below noise / 20 when the unit is below noise / 10.
    place = math.ceil(math.log10(2 * noise_ns / NOISE_PARTS)) - 1
    digits = math.floor(math.log10(time_ns)) - place + 1
    return significant(time_ns, min(max(digits, MIN_DIGITS), MAX_DIGITS))


def significant(value: float, digits: int) -> float:
    """``value`` to ``digits`` significant digits; infinities and NaN pass through, for the checks to refuse by name."""
    return float(f"{value:.{digits - 1}e}")
