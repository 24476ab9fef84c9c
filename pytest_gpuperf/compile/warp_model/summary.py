"""The visits of a walk, added up: what a warp executes, waits for, and asks of memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pytest_gpuperf.compile.warp_model.addresses import Pattern
from pytest_gpuperf.compile.warp_model.loops import Visit
from pytest_gpuperf.compile.warp_model.values import WARP
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

MODEL_VERSION = 11
"""Raised whenever an estimate of the same machine code changes: a latency, a rule of the walk, a rounding."""
DIGITS = 4
"""Significant digits of what is kept."""


def summary(visits: Sequence[Visit], warps: int) -> WarpEstimate:
    """The visits of so many warps, added up and shared out among them."""
    executed: dict[str, float] = defaultdict(float)
    waits: dict[str, float] = defaultdict(float)
    lanes = cycles = divisions = 0.0
    for visit in visits:
        visit.times /= warps
        executed[visit.step.klass] += visit.times
        lanes += visit.times * visit.share
        cycles += visit.times * visit.cycles
        divisions += visit.times * visit.divides
        waits[visit.waited_for] += visit.times * visit.waited
    issued = sum(executed.values())
    return WarpEstimate(
        model=MODEL_VERSION,
        executed={name: _rounded(count) for name, count in sorted(executed.items()) if count},
        cycles=_rounded(cycles),
        waits={name: _rounded(count) for name, count in sorted(waits.items()) if count},
        lanes=_rounded(WARP * lanes / issued) if issued else WARP,
        divisions=_rounded(divisions),
        accesses=_accesses(visits),
    )


def _accesses(visits: Sequence[Visit]) -> tuple[Access, ...]:
    """Memory instructions of one kind and pattern in one record, in a fixed order."""
    times: dict[Pattern, float] = defaultdict(float)
    fresh: dict[Pattern, float] = defaultdict(float)
    waiting: dict[Pattern, float] = defaultdict(float)
    scratch = _stores_of_scratch(visits)
    seen: dict[str, _Seen] = defaultdict(_Seen)
    for visit in visits:
        pattern = visit.pattern
        if pattern is None or not pattern.lanes or not visit.times:
            continue
        kind = pattern._replace(words=frozenset())
        times[kind] += visit.times * visit.data_share
        words = visit.times * seen[pattern.op].anew(pattern.words, visit.data_share)
        fresh[kind] += words
        waiting[kind] += words if visit.step.address in scratch else 0
    found = [
        Access(op=kind.op, bytes=kind.bytes, times=_rounded(times[kind]), lanes=kind.lanes, sectors=kind.sectors,
               turns=kind.turns, start=kind.start, strides=kind.strides, distinct=_rounded(4 * fresh[kind]),
               scratch=_rounded(4 * waiting[kind]))
        for kind in times
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.op, one.bytes, one.sectors or 0, one.turns or 0, str(one))))


class _Seen:
    """Words that a warp has touched, wholly or on one side of a branch that data decide."""

    def __init__(self) -> None:
        self._whole: set[int] = set()
        self._parts: dict[int, float] = {}

    def anew(self, words: frozenset[int], share: float) -> float:
        """Touch these by a share of the warp; returns how many of them that is for the first time.

        Where each side of a branch touches a word, both together touch it once.
        """
        new = words - self._whole
        if share >= 1:
            self._whole |= new
            return len(new) - (sum(self._parts.pop(word, 0.0) for word in new) if self._parts else 0.0)
        before = sum(self._parts.get(word, 0.0) for word in new)
        self._parts.update({word: min(1.0, self._parts.get(word, 0.0) + share) for word in new})
        return sum(self._parts[word] for word in new) - before


def _stores_of_scratch(visits: Sequence[Visit]) -> frozenset[int]:
    """Addresses of the stores most of whose words are read again, and by the last access of the way to them."""
    last: dict[int, str] = {}
    stored: dict[int, set[int]] = defaultdict(set)
    for visit in visits:
        for word in visit.pattern.words if visit.pattern is not None else ():
            last[word] = visit.step.klass
            if visit.step.klass == "global_store":
                stored[visit.step.address].add(word)
    reread = {address: sum(last[word] == "global_load" for word in words) for address, words in stored.items()}
    return frozenset(address for address, words in stored.items() if 2 * reread[address] > len(words))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS - 1}e}")
