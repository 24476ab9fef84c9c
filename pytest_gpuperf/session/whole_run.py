"""What the tests of a run show together: of the machine, and whether there was anything to measure at all.

The same for the book of one run and for that of shards which were merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import TimeFigures, Verdict
from pytest_gpuperf.session.static_gate import ENDED_AT, PUT_BEHIND


def of_the_machine(book: Book) -> tuple[tuple[str, ...], str]:
    """Signs that the machine changed as a whole, as sentences, and why no red verdict on time is to be trusted.

    The second for a launch that was paired with itself and came out different; empty if none did.
    """
    if not book.judged_times:
        return (), ""
    from pytest_gpuperf.judge import error_budget, noninferiority  # noqa: PLC0415 SciPy comes with them

    figures = [judgement.time for judgement in book.judgements if judgement.time is not None]
    moved = [
        _by_the_machine(figure)
        for figure in figures
        if figure.record_ratio is not None and figure.pair_slot == "short"  # else the ratio is not that of the rounds
    ]
    alarms = [one for one in book.evidence if one.self_pair and error_budget.self_pair_alarm(one.self_pair)]
    shifts = error_budget.environment_shift(moved, noninferiority.OMEGA, book.canaries)
    return shifts, _self_pair_problem(alarms) if alarms else ""


def _self_pair_problem(alarms: Iterable[TestEvidence]) -> str:
    named = "; ".join(
        f"{one.node_id} [{one.self_pair.workload}] x{one.self_pair.ratio:.3f} after {one.self_pair.blocks} "
        f"blocks (seed {one.self_pair.seed})"
        for one in alarms
        if one.self_pair is not None
    )
    return (
        f"a launch paired with itself came out different: {named}. The machine is the finding, not the code: no red "
        "verdict on time of this run is to be trusted. Look for other work on the GPU and for moving clocks "
        "(gpuperf doctor), and run again."
    )


def _by_the_machine(figures: TimeFigures) -> float:
    """Log of today's time over the record's, less what the code did to it where the two were paired."""
    of_the_code = figures.ratio if figures.method == "paired" and figures.ratio else 1.0
    return math.log(figures.record_ratio or 1.0) - math.log(of_the_code)


def nothing_measured(book: Book, options: Options, *, passed: bool) -> str:
    """Why this run may not be called a success although its tests passed; empty if it may.

    Where tests are red too, one line for what each of them says.
    """
    gathered = book.gathered_anything if options.gates else book.gathered_counters
    incomparable = _nothing_compared(book) if options.open == "fail" and options.update is None else ""
    if incomparable or gathered or not passed:
        return incomparable
    return _nothing_gathered(book, options)


def _nothing_gathered(book: Book, options: Options) -> str:
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


def _nothing_compared(book: Book) -> str:
    """What kept each and every verdict of the run from comparing anything; empty if one did, or if there is none."""
    silent = (Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED)
    reasons = [judgement.reason for judgement in book.judgements if judgement.verdict is Verdict.NOT_COMPARABLE]
    if not reasons or any(judgement.verdict not in silent for judgement in book.judgements):
        return ""
    why = f"no workload could be compared with its record: {reasons[0]}"
    return f"{why}. A gate without a comparison would always be green."


def _why_nothing(book: Book) -> str:
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
