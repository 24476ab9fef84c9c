"""One warp's registers: executes one instruction at a time, as far as its result can be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model import arithmetic
from pytest_gpuperf.compile.warp_model.arithmetic import ONE, UNKNOWN, WORD, ZERO, Value, combine, lanes_of
from pytest_gpuperf.compile.warp_model.decode import TRUE, WORD_BYTES, ZEROS, Operand, Step, registers_from
from pytest_gpuperf.compile.warp_model.launch_inputs import is_size

CONSTANT = ZEROS | TRUE
"""Registers and predicates that nothing changes."""


class RegisterComparison(NamedTuple):
    """The comparison that made a predicate: it tells how far a loop's counter is from its bound."""

    left: Value
    right: Value

    @property
    def example(self) -> bool:
        return self.left.example or self.right.example


class Registers:
    """Registers and predicates of a warp."""

    def __init__(
        self, special: Mapping[str, Value], constants: Mapping[int, Value], *, flags_off: bool = False
    ) -> None:
        """``special`` registers by name, and words of ``constants`` by their place; what is in neither is unknown.

        With ``flags_off`` an example of a size that is asked whether it is zero is taken to be: an option that is off.
        """
        self._special = special
        self._constants = constants
        self._flags = {word.bits for word in constants.values() if word.example and is_size(word)} if flags_off else ()
        self._values: dict[str, Value] = dict.fromkeys(ZEROS, ZERO) | dict.fromkeys(TRUE, ONE)
        self.comparisons: dict[str, RegisterComparison] = {}
        """What each predicate was made of."""
        self._stack: dict[int, Value] = {}
        """Words of local memory by their address, as far as they are known."""

    def register(self, name: str) -> Value:
        return self._values.get(name, UNKNOWN)

    def predicate(self, operand: Operand | None) -> Value:
        """0 or 1; 1 without one."""
        if operand is None:
            return ONE
        held = self._values.get(operand.text, UNKNOWN)
        return combine(lambda bit: 1 - bit, held) if operand.inverted else held

    def address(self, step: Step) -> Value:
        """The low 32 bits of every lane's address: enough to tell them apart."""
        terms = [
            combine(lambda bits, by=scale: bits * by, self.register(name)) if name else Value(scale)
            for name, scale in step.terms
        ]
        return combine(lambda *given: sum(given) & WORD, *terms) if terms else ZERO

    def execute(self, step: Step, guard: Value) -> None:
        """Compute what can be computed."""
        if step.operation == "STL":
            self._spill(step, guard)
        if not step.writes:
            return
        found = self._unspilled(step) if step.operation == "LDL" else self._compute(step)
        if len(step.results) > 1 and found:
            places = range(0, 32 * len(step.results), 32)
            words = (combine(lambda bits, at=place: bits >> at & WORD, found[0]) for place in places)
            found = (*words, *found[1:])
        for place, name in enumerate(step.writes):
            value = found[place] if place < len(found) else UNKNOWN
            if name not in CONSTANT:
                self._values[name] = value if guard is ONE else _merged(guard, value, self.register(name))

    def _spill(self, step: Step, guard: Value) -> None:
        """Keep what goes to the thread's stack; an index that is not known may overwrite any of it."""
        place = self.address(step).bits
        if not isinstance(place, int) or len(step.numbers) < 2 or step.bytes < WORD_BYTES:
            self._stack.clear()
            return
        for offset, name in enumerate(registers_from(step.numbers[1].text, step.bytes // WORD_BYTES)):
            at = place + WORD_BYTES * offset
            self._stack[at] = _merged(guard, self.register(name), self._stack.get(at, UNKNOWN))

    def _unspilled(self, step: Step) -> tuple[Value, ...]:
        """What was kept on the stack, as one number."""
        place = self.address(step).bits
        if not isinstance(place, int) or step.bytes < WORD_BYTES:
            return ()
        words = [self._stack.get(place + offset, UNKNOWN) for offset in range(0, step.bytes, WORD_BYTES)]
        return (_joined(words),)

    def _compute(self, step: Step) -> tuple[Value, ...]:
        """The results, as far as they are known; notes what a predicate is made of."""
        rule, carries = arithmetic.rule_of(step), step.operation == "IADD3"
        numbers = tuple([self._read(one, carries=carries) for one in step.numbers]) if rule is not None else ()
        if step.operation == "ISETP" and step.modifiers & {"EQ", "NE"} and ZERO in numbers:
            numbers = tuple([ZERO if one.example and one.bits in self._flags else one for one in numbers])
        made_of = self._made_of(step, numbers) if step.flags else None
        for name in step.flags:
            self.comparisons.pop(name, None)
            if made_of is not None and name not in TRUE:
                self.comparisons[name] = made_of
        return rule(step, numbers, tuple([self.predicate(one) for one in step.predicates])) if rule is not None else ()

    def _made_of(self, step: Step, numbers: Sequence[Value]) -> RegisterComparison | None:
        """The sides of a comparison, of one in two words the lower ones.

        What is made of a single other predicate, as sm_80 hands a uniform one on, is made of what that one was.
        """
        if step.operation == "ISETP" and "EX" not in step.modifiers:
            return RegisterComparison(numbers[0], numbers[1]) if numbers else None
        handed_on = {"PLOP3": step.predicates, "ISETP": step.predicates[-1:]}.get(step.operation, ())
        names = {source.text for source in handed_on} - TRUE
        return self.comparisons.get(names.pop()) if len(names) == 1 else None

    def _read(self, operand: Operand, *, carries: bool) -> Value:
        """A source, with its sign, in as many bits as the instruction takes.

        Where it ``carries``, the negative of a word has 33 bits: adding it carries where subtracting does not borrow.
        """
        words = operand.words
        if operand.kind == "register":
            value = self.register(operand.text) if words == 1 else self._pair(operand.text)
        elif operand.kind == "number":
            value = Value(operand.number & (1 << 32 * words) - 1)
        elif operand.kind == "constant":
            place = operand.number & -WORD_BYTES
            value = _joined([self._constants.get(place + WORD_BYTES * word, UNKNOWN) for word in range(words)])
        else:
            value = self._special.get(operand.text, UNKNOWN)
        if operand.inverted:
            return combine(lambda bits: bits ^ WORD, value)
        if operand.negative:
            whole = 1 << 32 * words
            keep = whole << 1 if carries and words == 1 else whole
            return combine(lambda bits: (whole - bits) % keep, value)
        return value

    def _pair(self, first: str) -> Value:
        names = registers_from(first, 2)
        return _joined([self.register(name) for name in names])


def _joined(words: Sequence[Value]) -> Value:
    """Words of 32 bits, the lowest first, as one number."""
    if len(words) == 1:
        return words[0]
    return combine(lambda *known: sum(word << 32 * place for place, word in enumerate(known)), *words)


def _merged(guard: Value, new: Value, old: Value) -> Value:
    """Content of a register after an instruction that may not have run in every lane."""
    if guard.bits == 1:
        return new
    if guard.bits == 0:
        return old
    if isinstance(guard.bits, tuple) and old.bits is None:
        return new  # who reads it runs under the same guard: the other lanes hold nothing of use
    return combine(lambda on, a, b: a if on else b, guard, new, old)


def active_lanes(guard: Value, mask: tuple[bool, ...]) -> tuple[bool, ...]:
    """The lanes of ``mask`` in which the guard holds; all of them where that is unknown."""
    if guard.bits is None:
        return mask
    return tuple(on and bool(bit) for on, bit in zip(mask, lanes_of(guard.bits), strict=True))
