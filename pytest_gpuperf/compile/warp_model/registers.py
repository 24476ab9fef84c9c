"""One warp's registers: executes one instruction at a time, as far as its result can be known."""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.compile.warp_model import arithmetic
from pytest_gpuperf.compile.warp_model.addresses import WORD_BYTES, address_of, bytes_of
from pytest_gpuperf.compile.warp_model.decode import TRUE, ZERO, Operand, Step, registers_from
from pytest_gpuperf.compile.warp_model.issue_clock import IssueClock
from pytest_gpuperf.compile.warp_model.launch_inputs import Surroundings
from pytest_gpuperf.compile.warp_model.values import (
    ARGUMENT_SHIFT,
    DATA,
    EXAMPLE,
    INHERITED,
    UNKNOWN,
    WORD,
    Value,
    combine,
    lanes_of,
)

_CARRYING = frozenset({"IADD3", "UIADD3"})
_COMPARING = frozenset({"ISETP", "UISETP", "PLOP3", "UPLOP3"})
"""Instructions that write predicates that are still the outcome of a comparison, or of several."""
ALL_PREDICATES = 0x7F
"""P0 to P6, a bit each."""
_READING = frozenset({"global_load", "shared_load", "local_load", "atomic", "texture", "bulk_copy"})
"""Classes of instructions whose results are data."""
_HANDING_ON = frozenset({"MOV", "UMOV", "LDC", "ULDC", "LDCU", "R2UR"})


Guard = tuple[str, bool]
"""Name of a predicate, and whether it must not hold."""


class RegisterComparison(NamedTuple):
    """Comparison that made a predicate: tells how far a loop's counter is from its bound."""

    left: Value
    right: Value
    names: tuple[str, ...]
    """Names of the registers or constants that held them."""

    @property
    def sides(self) -> tuple[Value, Value]:
        return self.left, self.right


class Machine:
    """Registers, predicates, and the clock that tells when each will be there."""

    def __init__(self, surroundings: Surroundings, arch: str) -> None:
        self._surroundings = surroundings
        self._values: dict[str, Value] = {}
        self._guard: Guard | None = None
        """Of the instruction that is executed."""
        self._under: dict[str, tuple[Guard, Value]] = {}
        """What a register holds for who reads it under the guard that it was written under, as long as that holds."""
        self._stack: dict[int, Value] = {}
        """Words of local memory by their address, as far as they are known."""
        self.clock = IssueClock(arch)
        self.comparisons: dict[str, RegisterComparison] = {}
        self._laid_by: dict[str, RegisterComparison] = {}
        """Comparisons of predicates that a register keeps meanwhile."""
        self.tested: set[int] = set()
        """Arguments that were compared with zero, by their place in the constant bank."""
        self.used: set[int] = set()
        """Arguments that were used for anything else."""

    def register(self, name: str) -> Value:
        guard, value = self._under.get(name, (None, UNKNOWN))
        if guard is not None and guard == self._guard:
            return value
        return Value(0) if name in ZERO else self._values.get(name, UNKNOWN)

    def guard_of(self, step: Step) -> Value:
        """The guard of an instruction that is to be executed next; what it reads is read under it."""
        self._guard = (step.guard.text, step.guard.inverted) if step.guard is not None else None
        return self.predicate(step.guard)

    def predicate(self, operand: Operand | None) -> Value:
        """0 or 1; True without one."""
        if operand is None:
            return Value(1)
        held = Value(1) if operand.text in TRUE else self._values.get(operand.text, UNKNOWN)
        return combine(lambda bit: 1 - bit, (held,)) if operand.inverted else held

    def execute(self, step: Step, guard: Value) -> float:
        """Compute what can be computed; returns the cycles from the instruction before to this one."""
        cycles = self.clock.advance(step)
        if step.base == "STL":
            self._spill(step)
        if step.writes:
            self._write(step, guard, self._compute(step))
        if step.base == "LDL":
            self._unspill(step)
        return cycles

    def _spill(self, step: Step) -> None:
        """Keep what goes to the thread's stack; an index that is not known may overwrite any of it."""
        place = address_of(step, self.register).bits
        if not isinstance(place, int) or len(step.sources) < 2:
            self._stack.clear()
            return
        guard = self.predicate(step.guard)
        size = bytes_of(step)
        for offset, name in enumerate(registers_from(step.sources[1].text, max(1, size // WORD_BYTES))):
            value = self.register(name) if size >= WORD_BYTES else UNKNOWN
            at = place // WORD_BYTES * WORD_BYTES + WORD_BYTES * offset
            self._stack[at] = _merged(guard, value, self._stack.get(at, UNKNOWN))

    def _unspill(self, step: Step) -> None:
        """What was kept on the stack comes back; anything else stays unknown."""
        place, size = address_of(step, self.register).bits, bytes_of(step)
        if isinstance(place, int) and size >= WORD_BYTES and step.guard is None and step.results:
            for offset, name in enumerate(registers_from(step.results[0], size // WORD_BYTES)):
                self._values[name] = self._stack.get(place + WORD_BYTES * offset, UNKNOWN)

    def _compute(self, step: Step) -> tuple[Value, ...]:
        if step.base == "P2R":
            return (self._packed(step),)
        rule = arithmetic.rule_of(step)
        if rule is None:
            return ()
        values = tuple(self._read(step, place, operand) for place, operand in enumerate(step.sources))
        if step.base in ("ISETP", "UISETP"):
            self._note(step, values)
        elif step.base in ("PLOP3", "UPLOP3") and step.flags:
            self._hand_on(step)
        self._note_arguments(step, values)
        return rule(step, values)

    def _note_arguments(self, step: Step, values: tuple[Value, ...]) -> None:
        """Notes which arguments are compared with zero, and which are used otherwise than by handing them on."""
        named = {value.argument for value in values if value.marks >> ARGUMENT_SHIFT}
        if not named or step.base in _HANDING_ON or "MOV" in step.modifiers:
            return
        asks = step.base in ("ISETP", "UISETP") and step.modifiers & {"EQ", "NE"} and "EX" not in step.modifiers
        is_test = bool(asks) and any(value == Value(0) for value in values)
        (self.tested if is_test else self.used).update(named)

    def _packed(self, step: Step) -> Value:
        """The predicates that the mask names, as bits of a register."""
        places = _masked(step)
        held = tuple(self._values.get(f"P{place}", UNKNOWN) for place in places)
        return combine(lambda *bits: sum(bit << place for bit, place in zip(bits, places, strict=True)), held)

    def _lay_by(self, step: Step) -> None:
        """Keep what the one predicate was made of that a register now holds; forget it of a register written anew."""
        for name in step.results:
            self._laid_by.pop(name, None)
        places = _masked(step) if step.base == "P2R" else []
        if len(places) == 1 and (found := self.comparisons.get(f"P{places[0]}")) is not None:
            self._laid_by[step.results[0]] = found

    def _hand_on(self, step: Step) -> None:
        """A predicate made of a single other one, as sm_80 hands a uniform one on, was made of what that one was."""
        made_of = {source.text for source in step.sources if source.kind == "predicate"} - set(TRUE)
        found = self.comparisons.get(made_of.pop()) if len(made_of) == 1 else None
        if found is None:
            self.comparisons.pop(step.flags[0], None)
        else:
            self.comparisons[step.flags[0]] = found

    def _note(self, step: Step, values: tuple[Value, ...]) -> None:
        """Keep the sides of a comparison; of one in two words the lower ones."""
        numbers = [(v, source) for v, source in zip(values, step.sources, strict=True) if source.kind != "predicate"]
        (left, one), (right, other) = numbers[:2]
        found: RegisterComparison | None = RegisterComparison(left, right, (one.text, other.text))
        if "EX" in step.modifiers:
            lower = [source.text for source in step.sources if source.kind == "predicate"]
            found = self.comparisons.get(lower[-1]) if lower else None
        elif one.text in self._laid_by and right == Value(0):
            found = self._laid_by[one.text]
        if found is not None and step.flags:
            self.comparisons[step.flags[0]] = found

    def _read(self, step: Step, place: int, operand: Operand) -> Value:
        """A source, with its sign, in as many bits as the instruction takes."""
        if operand.kind == "predicate":
            return self.predicate(operand)
        words = self._words(step, place)
        if operand.kind == "number":
            value = Value(operand.number & (1 << 32 * words) - 1)
        elif operand.kind == "constant":
            value = self._surroundings.constant(operand.number, words)
        elif operand.kind == "register":
            value = self._registers(operand.text, words)
        else:
            value = self._surroundings.special(operand.text)
        if operand.inverted:
            return combine(lambda bits: bits ^ WORD, (value,))
        if operand.negative:
            whole = 1 << 32 * words
            keep = whole << 1 if step.base in _CARRYING and words == 1 else whole
            return combine(lambda bits: (whole - bits) % keep, (value,))
        return value

    def _words(self, step: Step, place: int) -> int:
        """Number of registers that the source takes."""
        if step.base in ("LDC", "ULDC", "LDCU"):
            return len(step.results)
        if "64" in step.modifiers or ("SETP" in step.base and step.modifiers & {"S64", "U64"}):
            return 2
        wide = step.base in ("IMAD", "UIMAD") and step.modifiers & {"WIDE", "HI"}
        return 2 if wide and place == 2 else 1

    def _registers(self, first: str, words: int) -> Value:
        names = registers_from(first, words)
        if len(names) < 2:
            return self.register(first)
        return combine(lambda a, b: a | b << 32, (self.register(names[0]), self.register(names[1])))

    def _write(self, step: Step, guard: Value, found: tuple[Value, ...]) -> None:
        if self._laid_by or step.base == "P2R":
            self._lay_by(step)
        new = self._named(step, found)
        if step.base not in _COMPARING:
            for name in step.flags:
                self.comparisons.pop(name, None)  # that was another value of it
        for name, value in new.items():
            if name not in ZERO and name not in TRUE:
                self._values[name] = _merged(guard, value, self._values.get(name, UNKNOWN))
        if self._under or self._guard is not None:
            self._keep_under(new, guard)

    def _named(self, step: Step, found: tuple[Value, ...]) -> dict[str, Value]:
        """What an instruction writes, by register and predicate."""
        if not found:
            return dict.fromkeys(step.writes, self._unknown(step))
        new: dict[str, Value] = {}
        values = list(found)
        if step.results:
            number = values.pop(0)
            if len(step.results) == 1:
                new[step.results[0]] = number if number.argument else Value(number.bits, number.marks)
            for place, name in enumerate(step.results if len(step.results) > 1 else ()):
                new[name] = combine(lambda bits, at=32 * place: bits >> at & WORD, (number,))
        new.update(zip(step.flags, values, strict=False))
        others = [name for name in step.writes if name not in new]
        return {**new, **dict.fromkeys(others, self._unknown(step))} if others else new

    def _keep_under(self, new: dict[str, Value], guard: Value) -> None:
        """Of values written where data decide, keep what they are to who reads them under the same guard."""
        if self._under:
            self._under = {
                name: kept for name, kept in self._under.items() if name not in new and kept[0][0] not in new
            }
        if self._guard is not None and guard.bits is None and self._guard[0] not in new:
            self._under.update({name: (self._guard, value) for name, value in new.items() if name not in ZERO})

    def _unknown(self, step: Step) -> Value:
        """A result that is not computed: it depends on what its sources depend on, or on what memory holds."""
        if step.klass in _READING:
            return Value(None, DATA)
        marks = 0
        for operand in step.sources:
            held = self.predicate(operand) if operand.kind == "predicate" else self._values.get(operand.text, UNKNOWN)
            marks |= held.marks | (EXAMPLE if operand.kind == "constant" else 0)
        return Value(None, marks & INHERITED)


def _masked(step: Step) -> list[int]:
    """Numbers of the predicates that ``P2R`` takes; all of them without a mask."""
    mask = next((source.number for source in reversed(step.sources) if source.kind == "number"), ALL_PREDICATES)
    return [place for place in range(ALL_PREDICATES.bit_length()) if mask >> place & 1]


def _merged(guard: Value, new: Value, old: Value) -> Value:
    """Content of a register after an instruction that may not have run in every lane."""
    if guard.bits == 1:
        return new
    if guard.bits == 0:
        return old
    if isinstance(guard.bits, tuple) and old.bits is None:
        return new  # who reads it runs under the same guard: the other lanes hold nothing of use
    if guard.bits is None or new.bits is None or old.bits is None:
        return Value(None, (new.marks | old.marks) & INHERITED)
    return combine(lambda on, a, b: a if on else b, (guard, new, old))


def active_lanes(guard: Value, mask: tuple[bool, ...]) -> tuple[bool, ...]:
    """The lanes of ``mask`` in which the guard holds; all of them where that is unknown."""
    if guard.bits is None:
        return mask
    return tuple(on and bool(bit) for on, bit in zip(mask, lanes_of(guard.bits), strict=False))
