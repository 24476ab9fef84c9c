"""What goes with a verdict on time: what differs in the code, what takes the time, which budget would have done."""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.compile.cubin.symbol_names import readable
from pytest_gpuperf.config.flags import MOST_BUDGET_S
from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.formatting import duration, numbered
from pytest_gpuperf.judge.block_scores import RANKS, SIGNS
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.evidence import TimeRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.timing.blocks import WANTED_BLOCKS
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.workload.baseline_kernel import changes_since
from pytest_gpuperf.workload.timed_rounds import TimedWorkload

MOST_KERNELS = 8
"""Of a callable that a note names."""


def explained(work: TimedWorkload, baseline: TimeRecord | None, judgement: Judgement) -> Judgement:
    """The judgement with what differs in a slower launch's code, or a callable's kernels if it did not pass."""
    launch, changes, notes = work.request.launch, judgement.changes, judgement.notes
    if launch is not None and baseline is not None and judgement.verdict is Verdict.SLOWER:
        changes = changes_since(work.worker.store, work.worker.compile_cache, work.key, baseline, launch)
    if launch is None and not judgement.verdict.is_pass:
        notes = (*notes, *_breakdown(work.worker.timer))
    return msgspec.structs.replace(judgement, changes=changes, notes=notes)


def with_obstacle(judgement: Judgement, obstacle: str) -> Judgement:
    """The judgement with why there are no pairs; as it is where there is no such reason, or no time."""
    if not obstacle or judgement.time is None:
        return judgement
    return msgspec.structs.replace(judgement, time=msgspec.structs.replace(judgement.time, not_paired=obstacle))


def _breakdown(timer: Timer) -> tuple[str, ...]:
    """The kernels of the last batch by their share of its time, where the timer sees kernels."""
    if not timer.kernel_breakdown:
        return ()
    kernels = sorted(timer.kernel_breakdown[-1].items(), key=lambda one: -one[1])
    shown = [f"{readable(name)} {duration(ns)}" for name, ns in kernels[:MOST_KERNELS]]
    if len(kernels) > MOST_KERNELS:
        shown.append(f"and {len(kernels) - MOST_KERNELS} more")
    return (f"its kernels: {', '.join(shown)}",)


def short_of_time(pairing: Pairing, policy: Policy, budget_s: float, before_s: float) -> tuple[str, ...]:
    """What budget would do, where this one ended before there were as many blocks as a verdict takes.

    ``before_s`` went to rounds.  What all blocks call slower takes more of them than a pass, if they can prove it.
    """
    process = RANKS if pairing.long else SIGNS
    taken, needed = pairing.paired.blocks, process.unanimous_blocks(policy.beta, policy.blocks_max)
    slower = process.unanimous_blocks(policy.alpha, policy.blocks_max)
    if pairing.r and min(pairing.r) > math.log1p(policy.delta) and math.isfinite(slower):
        needed = max(needed, slower)
    if pairing.paired.decision is not Decision.INCONCLUSIVE or not pairing.blocks or not taken < needed < math.inf:
        return ()
    each_s = sum(block.seconds for block in pairing.blocks) / len(pairing.blocks)
    wanted = max(WANTED_BLOCKS, needed) - len(pairing.blocks)
    wanted_s = math.ceil(before_s + pairing.seconds + wanted * each_s)
    remedy = f"raise it with budget_s={wanted_s}, --gpuperf-budget={wanted_s}"
    if wanted_s > MOST_BUDGET_S:
        remedy = f"that would be {wanted_s} s, more than a budget may be ({MOST_BUDGET_S} s): give the launch less work"
    return (
        f"its budget of {budget_s:g} s ended after {numbered(len(pairing.blocks), 'block')}, and a verdict takes "
        f"{needed:.0f} or more: {remedy}",
    )
