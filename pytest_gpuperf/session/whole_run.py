"""What the tests of a run show together: of the machine, and whether there was anything to measure at all."""

from __future__ import annotations

import math

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.results import Results
from pytest_gpuperf.session.not_reached import ENDED_AT, PUT_BEHIND

SELF_PAIR_E = 1000.0
"""E-value at which a launch that was paired with itself counts as different from itself."""


def of_the_machine(book: Results) -> tuple[str, ...]:
    """Warnings about the machine: launches that were paired with themselves and came out different."""
    found = [(one.node_id, one.self_pair) for one in book.evidence if one.self_pair is not None]
    return tuple(
        f"A/A test: {node} [{pair.workload}] differs from itself, x{pair.ratio:.3f} after {pair.blocks} blocks (seed "
        f"{pair.seed}): look for other work on the GPU and for moving clocks (gpuperf doctor), and run again"
        for node, pair in found
        if max(pair.log_e_slower, pair.log_e_faster) >= math.log(SELF_PAIR_E)
    )


def nothing_measured(book: Results, options: Options, *, passed: bool) -> str:
    """Why this run may not be called a success although its tests passed; empty if it may.

    Where tests are red too, one line for what each of them says.
    """
    gathered = book.gathered_anything if options.gates else book.gathered_counters
    incomparable = _nothing_compared(book) if options.open == "fail" and options.update is None else ""
    if incomparable or gathered or not passed:
        return incomparable
    return _nothing_gathered(book, options)


def _nothing_gathered(book: Results, options: Options) -> str:
    if book.tests_run == 0:
        return (
            "nothing was measured: no test ran. Check the paths, -k, -m, --setup-only and --setup-plan of this run: "
            "a gate that selects nothing would always be green."
        )
    if not options.gates:
        tests = numbered(book.tests_run, "test", "ran and has no", "ran and none has")
        return (
            f"nothing was counted: {tests} counters. Add --gpuperf to gate times and static evidence as well, or see "
            "to what is said above."
        )
    return f"nothing was measured: {_why_nothing(book)}"


def _nothing_compared(book: Results) -> str:
    """What kept each and every verdict of the run from comparing anything; empty if one did, or if there is none."""
    silent = (Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED)
    reasons = [judgement.reason for judgement in book.judgements if judgement.verdict is Verdict.NOT_COMPARABLE]
    if not reasons or any(judgement.verdict not in silent for judgement in book.judgements):
        return ""
    why = f"no workload could be compared with its record: {reasons[0]}"
    return f"{why}. A gate without a comparison would always be green."


def _why_nothing(book: Results) -> str:
    """What the tests of a gated run without evidence did instead."""
    count = book.tests_run
    ended = [one for one in book.evidence if one.status in ENDED_AT]
    if not ended:
        tests = numbered(count, "test", "ran and did not use", "ran and none used")
        return f"{tests} cuda_kernel or gpuperf. Point --gpuperf at tests that do, or leave the flag out."
    callables = sum(len(one.workloads) for one in ended)  # kernels would have left machine code
    if callables:
        those = numbered(callables, "callable", "has", "have")
        return (
            f"{those} no machine code to judge, and times need a GPU. Run on a machine with one, or without --gpuperf."
        )
    if len(ended) < count:
        tests = f"{count} tests ran, and {len(ended)} of them ended before a"
    else:
        tests = numbered(count, "test", "ran and ended before its", "ran and each ended before its")
    return (
        f"{tests} first cuda_kernel(...) or gpuperf(...), at its first need for {ENDED_AT[ended[0].status]}. "
        f"{PUT_BEHIND}, or leave --gpuperf out."
    )
