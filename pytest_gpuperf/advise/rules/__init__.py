"""The rules: one small pure function per cause, from a case to what it finds.

A rule fires on evidence that differs by more than its threshold, which stands beside it with where it comes from.  What
it finds is weighed afterwards, by what putting it right would gain.
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_gpuperf.advise.comparison import Case, Finding
from pytest_gpuperf.advise.rules import compute, memory, waiting

Rule = Callable[[Case], Finding | None]

RULES: tuple[Rule, ...] = (
    memory.register_spilling, memory.stack, memory.address_taken, memory.uncoalesced,
    memory.bank_conflicts, memory.redundant_traffic, memory.lost_vectorisation, memory.cache_hit_loss,
    compute.lost_tensor_cores, compute.double_precision, compute.division, compute.divergence,
    compute.instruction_growth, waiting.launch_configuration, waiting.more_work_per_thread, waiting.occupancy_lost,
    waiting.barrier_stalls, waiting.exposed_latency,
)  # fmt: skip
"""Among equal gains the one further up is named first: the more particular before the more general."""
