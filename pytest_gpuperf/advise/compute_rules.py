"""Causes that lie in what is computed: precision, division, divergence, tensor cores, sheer number."""

from __future__ import annotations

from pytest_gpuperf.advise.comparison import WARP, Case, Finding, Usage, change, grew
from pytest_gpuperf.compile.warp_model.accesses import MEMORY

SPLIT_GROWTH = 1.05
"""Branches that split a warp, and instructions lane by lane; exact figures."""
LANE_LOSS = 1.05
"""Mean active lanes; exact figures.  Nsight Compute's own rule speaks up below 24 of 32, without a comparison."""
INSTRUCTION_GROWTH = 1.03
"""Instructions per unit of work; the count varies by 0.1 % from run to run."""
TENSOR_LOSS = 1.1
"""Tensor instructions for the same work; exact figures."""
FP64_GROWTH = 1.1
"""Double-precision instructions, also as a share of all."""
DIVISION_GROWTH = 1.05
DIVISION_INSTRUCTIONS = 12.0
"""That a division by a run-time value takes more than a multiplication, on its fast path (GTC25 'Cost hierarchy')."""


def lost_tensor_cores(case: Case) -> Finding | None:
    """Fewer tensor instructions, and more multiply-adds in their place."""
    was, now = case.was.classes.get("tensor", 0), case.now.classes.get("tensor", 0)
    scalar_was, scalar_now = case.was.classes.get("fp32", 0), case.now.classes.get("fp32", 0)
    if not grew(now, was, TENSOR_LOSS) or scalar_now <= scalar_was:
        return None
    tensor = change("tensor instructions", was, now, case.per)
    scalar = change("fp32 instructions", scalar_was, scalar_now, case.per)
    return Finding("lost tensor cores", (tensor, scalar), case.was, gates=now == 0)


def double_precision(case: Case) -> Finding | None:
    """More double-precision instructions, and more of them among all."""
    was, now = case.was.classes.get("fp64", 0), case.now.classes.get("fp64", 0)
    if not grew(was, now, FP64_GROWTH) or not grew(was / case.was.issued, now / case.now.issued, FP64_GROWTH):
        return None
    evidence = (change("fp64 instructions", was, now, case.per),)
    # conversions and longer sequences come with it
    return Finding("double-precision literals", evidence, case.was, gates=was == 0)


def division(case: Case) -> Finding | None:
    """More divisions, roots or remainders with a slow path."""
    was, now = case.was.divisions, case.now.divisions
    if not grew(was, now, DIVISION_GROWTH):
        return None
    saved = min((now - was) * DIVISION_INSTRUCTIONS, case.now.issued - 1)
    issued = case.now.issued - saved
    classes = {name: count if name in MEMORY else count * issued / case.now.issued
               for name, count in case.now.classes.items()}  # fmt: skip
    evidence = (change("divisions and roots with a slow path", was, now, case.per),)
    # a call of the slow path keeps loads from being issued ahead of it
    waited = max(case.now.waits.get("global_load", 0) - case.was.waits.get("global_load", 0), 0)
    return Finding("slow-path division", evidence, slimmer(case.now, issued, classes).quicker(waited=waited))


def divergence(case: Case) -> Finding | None:
    """Fewer lanes take part in an instruction."""
    was, now = case.was.lanes, case.now.lanes
    if not grew(now, was, LANE_LOSS) or _longer_sides(case):
        return None
    evidence = (
        change("active lanes per instruction", was, now, f"of {WARP}"),
        change("instructions", case.was.issued, case.now.issued, case.per),
    )
    classes = {name: count * now / was for name, count in case.now.classes.items()}
    without = slimmer(case.now, case.now.issued * now / was, classes)
    requested, requests = case.was.load_lanes, case.now.load_lanes
    if requested is not None and requests is not None and grew(requests, requested, LANE_LOSS):
        # the sides of a split warp wait for their loads one after the other
        without = without.quicker(waited=case.now.waits.get("global_load", 0) * (1 - requests / requested))
    return Finding("divergence", evidence, without)


def _longer_sides(case: Case) -> bool:
    """Whether warps split as often as before, and it is the sides that became longer."""
    splits, now = case.was.split_branches, case.now.split_branches
    as_often = splits is not None and now is not None and not grew(splits, now, SPLIT_GROWTH)
    return as_often and grew(case.was.issued * case.was.lanes, case.now.issued * case.now.lanes, SPLIT_GROWTH)


def instruction_growth(case: Case) -> Finding | None:
    """More instructions, lane by lane, than other rules account for."""
    explained = _explained(case)
    rest = max(case.now.issued - explained, 1e-9)
    share = case.was.issued / rest
    if not _longer_sides(case):
        share *= case.was.lanes / case.now.lanes
    if share * INSTRUCTION_GROWTH > 1:
        return None
    more = {name: count - case.was.classes.get(name, 0) for name, count in case.now.classes.items()}
    most = sorted(((extra, name) for name, extra in more.items() if extra > 0), reverse=True)[:2]
    evidence = [change("instructions", case.was.issued, case.now.issued, case.per)]
    evidence += [change(f"{name.replace('_', ' ')} instructions", case.was.classes.get(name, 0),
                        case.now.classes[name], case.per) for _, name in most]  # fmt: skip
    scale = min((explained + rest * share) / case.now.issued, 1.0)
    classes = {name: count if name in MEMORY else max(min(count, case.was.classes.get(name, 0)), count * scale)
               for name, count in case.now.classes.items()}  # fmt: skip
    return Finding("instruction growth", tuple(evidence), slimmer(case.now, explained + rest * share, classes))


def _explained(case: Case) -> float:
    """Instructions that are new for reasons of their own: memory accesses, barriers, divisions, double precision."""
    if grew(case.was.classes.get("fp64", 0), case.now.classes.get("fp64", 0), FP64_GROWTH):
        return max(case.now.issued - case.was.issued, 0)
    new = {name: max(count - case.was.classes.get(name, 0), 0) for name, count in case.now.classes.items()}
    divisions = max(case.now.divisions - case.was.divisions, 0)
    return sum(new.get(name, 0) for name in (*MEMORY, "barrier")) + divisions * DIVISION_INSTRUCTIONS


def slimmer(usage: Usage, issued: float, classes: dict[str, float]) -> Usage:
    """With fewer instructions."""
    return usage.replace(classes=classes).quicker(instructions=usage.issued - issued)
