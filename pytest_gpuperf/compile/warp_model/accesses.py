"""Instructions that a warp executed: what addresses make the hardware do, and how much of it is new."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.arithmetic import Value, lanes_of
from pytest_gpuperf.compile.warp_model.decode import MATRIX, WORD_BYTES, Step
from pytest_gpuperf.compile.warp_model.registers import RegisterComparison
from pytest_gpuperf.model.warp_estimate import Access, Site

FLOATS = ("F16", "F32", "F64", "BF16")
"""Types of atomics that add lane by lane where lanes want one address; integers are combined: an H200 takes as long for
the sum or the largest of a warp as for one lane."""
SECTOR = 32
BANKS = 32
MATRIX_ROWS, MATRIX_ROW_BYTES = 8, 16
"""Of a matrix that LDSM or STSM moves: as many lanes name its rows (PTX ISA, "ldmatrix")."""
DIGITS = 4
"""Significant digits of what is kept."""
_PLACED = frozenset({"global_load", "global_store", "shared_load", "shared_store"})
MEMORY = _PLACED | {"local_load", "local_store"}
ADDRESSED = _PLACED | {"atomic"}
"""Instructions whose addresses decide what they cost; local memory is laid out by the hardware."""


class Pattern(NamedTuple):
    """One memory instruction as a warp executes it once."""

    op: str
    bytes: int
    lanes: int
    sectors: float | None = None
    wavefronts: float | None = None
    words: frozenset[int] = frozenset()
    """Addresses of distinct pieces of global memory, of 4 bytes or the access's own size; empty if data decide."""


@dataclasses.dataclass(slots=True)
class Visit:
    """One instruction, executed."""

    step: Step
    share: float
    """Fraction of the lanes."""
    data_share: float
    """Part of that fraction that data decide."""
    cycles: float
    waited: float
    waited_for: str
    times: float = 1.0
    pattern: Pattern | None = None
    """Of a memory instruction."""
    divides: bool = False
    """It is part of a division or root with a slow path."""
    other_way: int | None = None
    """Target of a conditional branch that was not taken."""
    comparison: RegisterComparison | None = None
    """What decided the branch."""
    lost: tuple[tuple[int, float], ...] = ()
    """``Splits.lost`` here."""
    caller: int | None = None
    """Address of the call that the way is inside of, the innermost one."""


def pattern_of(step: Step, address: Value, active: Sequence[bool]) -> Pattern:
    """Access pattern of the instruction, by the lanes that take part."""
    size, count = step.bytes, sum(active)
    kind = step.klass if step.klass != "atomic" else "atomic_shared" if step.operation == "ATOMS" else "atomic_global"
    if address.bits is None or not count:
        return Pattern(kind, size, count)
    taken = [place for place, on in zip(lanes_of(address.bits), active, strict=True) if on]
    if step.klass == "atomic":
        adds_floats = any(one.startswith(FLOATS) for one in step.modifiers)
        return Pattern(kind, size, count, None, max(Counter(taken).values()) if adds_floats else 1)
    if step.klass.startswith("shared"):
        rows = taken[: MATRIX_ROWS * size // WORD_BYTES]
        passes = bank_wavefronts(rows, MATRIX_ROW_BYTES) if step.operation in MATRIX else bank_wavefronts(taken, size)
        return Pattern(step.klass, size, count, None, passes)
    sectors, words = (_chunks(taken, size, chunk) for chunk in (SECTOR, min(size, WORD_BYTES)))
    return Pattern(step.klass, size, count, len(sectors), None, words)


def _chunks(places: Sequence[int], size: int, chunk: int) -> frozenset[int]:
    """Addresses of the aligned pieces of ``chunk`` bytes that these addresses touch."""
    return frozenset(part for place in places for part in range(place - place % chunk, place + size, chunk))


def bank_wavefronts(places: Sequence[int], size: int) -> int:
    """Passes that a shared-memory access takes.

    32 banks of 4 bytes; lanes that want the same word get it together.  Of 8 bytes per lane half a warp is served at a
    time, of 16 a quarter (CUDA C++ Programming Guide, "Shared Memory").
    """
    together = max(1, BANKS * WORD_BYTES // size) if size > WORD_BYTES else len(places)
    total = 0
    words = range(max(1, size // WORD_BYTES))
    for first in range(0, len(places), max(together, 1)):
        wanted = {place // WORD_BYTES + word for place in places[first : first + together] for word in words}
        total += max(Counter(word % BANKS for word in wanted).values())
    return total


def accesses_of(visits: Iterable[Visit]) -> tuple[Access, ...]:
    """Memory instructions of one kind and pattern in one record, in a fixed order."""
    requests = [(one, one.pattern) for one in visits if one.pattern is not None]
    scratch = _stores_of_scratch(requests)
    seen: dict[str, set[int]] = defaultdict(set)
    found: dict[Pattern, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for visit, pattern in requests:
        if not pattern.lanes or not visit.times:
            continue
        new = pattern.words - seen[pattern.op]
        seen[pattern.op] |= new
        total = found[pattern._replace(words=frozenset())]
        total[0] += visit.times * visit.data_share
        for figure in (1, 2) if visit.step.address in scratch else (1,):
            total[figure] += min(pattern.bytes, WORD_BYTES) * visit.times * len(new)
    records = [
        Access(op=kind.op, bytes=kind.bytes, times=rounded(times), lanes=kind.lanes, sectors=kind.sectors,
               wavefronts=kind.wavefronts, distinct=rounded(distinct), scratch=rounded(again))
        for kind, (times, distinct, again) in found.items()
    ]  # fmt: skip
    return tuple(sorted(records, key=lambda one: (one.op, one.bytes, one.sectors or 0, one.wavefronts or 0, str(one))))


def _stores_of_scratch(requests: Sequence[tuple[Visit, Pattern]]) -> set[int]:
    """Addresses of the stores most of whose words are read again, and by the last access of the way to them."""
    last: dict[int, str] = {}
    stored: dict[int, set[int]] = defaultdict(set)
    for visit, pattern in requests:
        last.update(dict.fromkeys(pattern.words, pattern.op))
        if pattern.op == "global_store":
            stored[visit.step.address] |= pattern.words
    return {
        address for address, words in stored.items()
        if 2 * sum(last[word] == "global_load" for word in words) > len(words)
    }  # fmt: skip


def sites_of(visits: Iterable[Visit]) -> dict[int, Site]:
    """The instructions of a way, by address."""
    found: dict[int, Site] = {}
    for visit in visits:
        step, pattern = visit.step, visit.pattern
        site = found.get(step.address) or Site((step.operation, *sorted(step.modifiers)), step.klass, visit.caller)
        found[step.address] = site
        site.times += visit.times
        site.waits[visit.waited_for] = site.waits.get(visit.waited_for, 0.0) + visit.times * visit.waited
        site.divisions += visit.times * visit.divides
        for branch, share in visit.lost:
            found[branch].lost += visit.times * share
            found[branch].inside += visit.times
        more = visit.times * visit.data_share
        if pattern is not None and pattern.lanes and more:
            part = more / (site.requests + more)
            site.bytes, site.lanes = pattern.bytes, site.lanes + (pattern.lanes - site.lanes) * part
            site.sectors, site.wavefronts = (
                new if not site.requests or new is None or mean is None else mean + (new - mean) * part
                for mean, new in ((site.sectors, pattern.sectors), (site.wavefronts, pattern.wavefronts))
            )
            site.requests += more
    return found


def rounded(value: float) -> float:
    """To ``DIGITS`` digits."""
    return float(f"{value:.{DIGITS - 1}e}")
