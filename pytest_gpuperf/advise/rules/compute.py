"""Causes that lie in what is computed: precision, division, divergence, tensor cores, sheer number."""

from __future__ import annotations

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.finding import Case, Finding, change, grew
from pytest_gpuperf.advise.usage import WARP, Usage

LANE_LOSS = 1.05
"""Mean active lanes; exact figures.  Nsight Compute's own rule speaks up below 24 of 32, without a comparison."""
INSTRUCTION_GROWTH = 1.03
"""Instructions per unit of work; the count varies by 0.1 % from run to run."""
FP64_GROWTH = 1.1
DIVISION_INSTRUCTIONS = 12.0
"""That a division by a run-time value takes more than a multiplication, on its fast path (GTC25 'Cost hierarchy')."""
TENSOR_FMA = 1024
"""Multiply-adds of one m16n8k8 instruction (GTC25 'Tensor core summary')."""


def lost_tensor_cores(case: Case) -> Finding | None:
    """Fewer tensor instructions, and more multiply-adds in their place."""
    was, now = case.was.classes.get("tensor", 0), case.now.classes.get("tensor", 0)
    fma, fma_now = case.was.classes.get("fp32", 0), case.now.classes.get("fp32", 0)
    if now >= was or fma_now <= fma:
        return None
    evidence = (
        change("tensor instructions", was, now, _per(case)),
        change("fp32 instructions", fma, fma_now, _per(case)),
    )
    return Finding(causes.TENSOR, evidence, case.was)


def double_precision(case: Case) -> Finding | None:
    """More double-precision instructions: they appear, or take a larger part in the same work."""
    was, now = case.was.classes.get("fp64", 0), case.now.classes.get("fp64", 0)
    if not grew(was, now, FP64_GROWTH) or not grew(was / case.was.issued, now / case.now.issued, FP64_GROWTH):
        return None
    extra = now - was
    conversions = case.now.classes.get("conversion", 0) - case.was.classes.get("conversion", 0)
    classes = dict(case.now.classes)
    classes["fp64"] = was
    classes["fp32"] = min(classes.get("fp32", 0), case.was.classes.get("fp32", 0)) + (0 if was else extra * 0)
    classes["fp32"] = max(classes["fp32"], case.was.classes.get("fp32", 0))
    if conversions > 0:
        classes["conversion"] -= conversions
    fewer = extra + max(conversions, 0) + max(case.now.classes.get("fp32", 0) - classes["fp32"], 0)
    issued = max(case.now.issued - fewer + (classes["fp32"] - case.was.classes.get("fp32", 0)), case.was.issued)
    evidence = (change("fp64 instructions", was, now, _per(case)),)
    return Finding(causes.DOUBLE, evidence, _slimmer(case.now, issued, classes))


def division(case: Case) -> Finding | None:
    """More divisions, roots or remainders with a slow path; or, in equal code, that path taken more often."""
    was, now = case.was.divisions, case.now.divisions
    if not grew(was, now, INSTRUCTION_GROWTH):
        return None
    extra = (now - was) * DIVISION_INSTRUCTIONS
    classes = dict(case.now.classes)
    for name in ("mufu", "conversion"):
        classes[name] = min(classes.get(name, 0), case.was.classes.get(name, 0))
    evidence = (change("divisions and roots with a slow path", was, now, _per(case)),)
    return Finding(causes.DIVISION, evidence, _slimmer(case.now, max(case.now.issued - extra, 1.0), classes))


def divergence(case: Case) -> Finding | None:
    """Fewer lanes take part in an instruction."""
    was, now = case.was.lanes, case.now.lanes
    if not grew(now, was, LANE_LOSS):
        return None
    evidence = (
        change("active lanes per instruction", was, now, f"of {WARP}"),
        change("instructions", case.was.issued, case.now.issued, _per(case)),
    )
    share = now / was
    classes = {name: count * share for name, count in case.now.classes.items()}
    return Finding(causes.DIVERGENCE, evidence, _slimmer(case.now, case.now.issued * share, classes))


def instruction_growth(case: Case) -> Finding | None:
    """More instructions, lane by lane, that no other rule accounts for."""
    was, now = case.was.thread_instructions, case.now.thread_instructions
    explained = _explained(case) * case.now.lanes
    if not grew(was, now - explained, INSTRUCTION_GROWTH):
        return None
    grown = sorted(
        ((count - case.was.classes.get(name, 0), name) for name, count in case.now.classes.items()), reverse=True
    )
    evidence = [change("instructions", case.was.issued, case.now.issued, _per(case))]
    evidence += [change(f"{name} instructions", case.was.classes.get(name, 0), case.now.classes[name])
                 for more, name in grown[:2] if more > 0]  # fmt: skip
    share = was / max(now - explained, 1e-9)
    classes = {name: min(count, case.was.classes.get(name, 0)) if name not in _MEMORY else count
               for name, count in case.now.classes.items()}  # fmt: skip
    issued = explained + (case.now.issued - explained) * share
    return Finding(causes.INSTRUCTIONS, tuple(evidence), _slimmer(case.now, issued, classes))


_MEMORY = frozenset({"global_load", "global_store", "shared_load", "shared_store", "local_load", "local_store"})


def _explained(case: Case) -> float:
    """Instructions that are new for reasons of their own: memory accesses, divisions, double precision."""
    extra = sum(
        max(case.now.classes.get(name, 0) - case.was.classes.get(name, 0), 0) for name in (*_MEMORY, "fp64", "barrier")
    )
    return extra + max(case.now.divisions - case.was.divisions, 0) * DIVISION_INSTRUCTIONS


def _slimmer(usage: Usage, issued: float, classes: dict[str, float]) -> Usage:
    """With fewer instructions; a warp alone takes less in proportion."""
    alone = usage.alone
    if alone is not None and usage.issued:
        alone *= min(issued / usage.issued, 1.0)
    return usage.replace(issued=issued, classes=classes, alone=alone)


def _per(case: Case) -> str:
    return "" if case.counted else "per warp"
