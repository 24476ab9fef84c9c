"""Machine code against machine code: exact figures, compared exactly.

There is no noise here: one byte of spill more is one byte of spill more.  ``static_rules`` says which figures gate.
Registers and shared memory matter through the theoretical occupancy.  More instructions do not gate: they are as often
an intended unrolled loop as a loss.

An estimate of the whole kernel overrides a single figure (``static_weight``), where the caller has one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import msgspec

from pytest_gpuperf.judge import static_rules
from pytest_gpuperf.judge.same_work import LAUNCH_CHANGED, SAME_CODE, tuned_otherwise
from pytest_gpuperf.judge.static_rules import Direction, Rule
from pytest_gpuperf.model.evidence import UNKNOWN_TOOLCHAIN, Key, StaticRecord, is_known
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict


def compare_static(
    key: Key, target: str, old: StaticRecord, new: StaticRecord, *, toolchains: tuple[str, str] | None = None
) -> Judgement:
    """Judge the machine code ``new`` against ``old``, both for architecture ``target``.

    ``toolchains`` are those of ``old`` and ``new``, where these may differ.  Of two versions, and of two unknown
    ones, only what costs by itself gates: spills, stack and occupancy; what has another source too is not comparable.
    """
    judgement = functools.partial(Judgement, key=key, target=target, kind="static")
    same_code = old.profile.code_hash == new.profile.code_hash
    if same_code and (old.block, old.dynamic_shared_bytes) == (new.block, new.dynamic_shared_bytes):
        return judgement(verdict=Verdict.UNCHANGED)
    changes = tuple(differences(old, new))
    known = toolchains is None or all(map(is_known, toolchains))
    if toolchains and not (known and toolchains[0] == toolchains[1]):
        same_source = known and bool(new.source_hash) and old.source_hash == new.source_hash
        return _across_compilers(judgement, toolchains, changes, same_source=same_source, captured=new.captured)
    worse, better = ([one.what for one in changes if one.direction == way] for way in ("worse", "better"))
    what, notes = ("the launch", (SAME_CODE,)) if same_code else ("the machine code", ())
    if tuned := tuned_otherwise(old.config, new.config):
        verdict, reason = Verdict.NOT_COMPARABLE, f"{tuned}: {_SETTLE}"
    elif worse:
        verdict, reason = Verdict.WORSE, f"{what} got worse: {', '.join(worse)}"
    elif better:
        verdict, reason = Verdict.BETTER, f"{what} got better: {', '.join(better)}"
    else:
        launch = f"{LAUNCH_CHANGED} ({', '.join(map(str, changes))}): needs a timing run"
        verdict, reason = Verdict.SAME, launch if same_code else NOTHING_GATES
    return judgement(verdict=verdict, reason=reason, changes=changes, notes=notes)


def _across_compilers(
    judgement: Callable[..., Judgement], toolchains: tuple[str, str], changes: Iterable[Change], *, same_source: bool,
    captured: bool,
) -> Judgement:  # fmt: skip
    """WORSE by what costs by itself; else the same source is SAME, and what was edited as well is not comparable.

    A kernel that a callable launches is SAME: its library may have another compiler any day.
    """
    was, now = (one or UNKNOWN_TOOLCHAIN for one in toolchains)
    same = "compile with the same version" if is_known(now) else "build it with CUDA 13, whose code names its compiler"
    compilers = f"the baseline was compiled by {was}, this is {now}"
    neutral = functools.partial(msgspec.structs.replace, direction="neutral", note="")
    changes = tuple(one if one.what in ACROSS_COMPILERS else neutral(one) for one in changes)
    verdict, reason = Verdict.NOT_COMPARABLE, f"another compiler: {same}, or accept it with pytest --update-baselines"
    if worse := ", ".join(one.what for one in changes if one.direction == "worse"):
        verdict, reason = Verdict.WORSE, f"the machine code got worse: {worse}"
    elif captured:
        reason = f"its library was compiled anew, by {was} and {now}: {NOTHING_GATES}"
        return judgement(verdict=Verdict.SAME, reason=reason, changes=changes)
    elif same_source:
        verdict, reason = Verdict.SAME, f"another compiler, the same source: {NOTHING_GATES}"
    return judgement(verdict=verdict, reason=reason, changes=changes, notes=(compilers,))


ACROSS_COMPILERS = frozenset(
    rule.what
    for rule in (static_rules.SPILL_STORES, static_rules.SPILL_LOADS, static_rules.STACK, static_rules.OCCUPANCY)
)
"""Figures that gate whichever compiler made the code."""
NOTHING_GATES = "the machine code changed; no gated metric regressed"
_SETTLE = (
    "figures of two configurations are not comparable. Accept this one with pytest --update-baselines, or fix the "
    "configuration of the autotuner"
)


def missing_static(key: Key, target: str) -> Judgement:
    return Judgement(key=key, target=target, kind="static", verdict=Verdict.NEW, reason="no baseline")


def differences(old: StaticRecord, new: StaticRecord) -> Iterable[Change]:
    """Every figure that differs, in the order of the rules, and then the classes of instructions."""
    if old.block != new.block:
        yield Change(what="block", before=_block(old), after=_block(new))
    for rule in static_rules.RULES:
        before, after = rule.read(old), rule.read(new)
        if before is not None and after is not None and before != after:
            direction = rule.trend(before, after)
            yield Change(
                what=rule.what, before=before, after=after, unit=rule.unit, direction=direction,
                note=_note(rule, direction, old, new),
            )  # fmt: skip
    for name in sorted({*old.profile.opcodes, *new.profile.opcodes}.difference(static_rules.CLASSES_WITH_RULES)):
        count, now = old.profile.opcodes.get(name, 0), new.profile.opcodes.get(name, 0)
        if count != now:
            yield Change(what=f"instructions: {name}", before=count, after=now)


def _note(rule: Rule, direction: Direction, old: StaticRecord, new: StaticRecord) -> str:
    if rule is static_rules.OCCUPANCY and old.occupancy and new.occupancy:
        before = f", before by {old.occupancy.limiter}" if old.occupancy.limiter != new.occupancy.limiter else ""
        return f"limited by {new.occupancy.limiter}{before}"
    if rule is static_rules.REGISTERS and direction == "neutral" and old.occupancy and old.occupancy == new.occupancy:
        return "occupancy holds"
    return rule.note if direction == "worse" else ""


def _block(record: StaticRecord) -> str:
    return "not launched" if record.block is None else "x".join(map(str, record.block))
