"""The last lines of a summary: how many workloads had which verdict, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from pytest_gpuperf.context.book import Book
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.options import UPDATE_MODES, Options
from pytest_gpuperf.report.folding import counted
from pytest_gpuperf.report.remarks import accepting_command, with_flags
from pytest_gpuperf.report.verdict_order import rank_of


def verdicts_of(evidence: Iterable[TestEvidence]) -> dict[Key, Verdict | None]:
    """Of each workload the verdict to know first, whatever it is on; None where nothing was judged."""
    found: dict[Key, Verdict | None] = {}
    for one in evidence:
        for work in one.workloads:
            found[work.key] = min((judged.verdict for judged in work.judgements), key=rank_of, default=None)
        for judged in one.unreached:
            found[judged.key] = min(judged.verdict, found.get(judged.key), key=rank_of)
    return found


def count_line(verdicts: Sequence[Verdict | None]) -> str:
    """``524 workloads: 256 WORSE, 268 UNCHANGED``."""
    return f"{numbered(len(verdicts), 'workload')}: {counted(verdicts)}"


def none_written(book: Book, options: Options, arguments: Sequence[str]) -> str:
    """What an update says that had nothing to write; ``arguments`` are the run's paths."""
    with_workload = {node for node, test in book.results.items() if test.workloads}
    if with_workload and all(book.answering_for(node) <= book.failures.keys() for node in with_workload):
        return "0 baselines written: every test with a workload failed"
    why = _why_none_written(book, options, arguments)
    return f"0 baselines written: {why}{', failed tests aside' if book.any_failed else ''}"


def _why_none_written(book: Book, options: Options, arguments: Sequence[str]) -> str:
    """What keeps the workloads of tests that passed from being written."""
    if not book.tests_run:
        mode = next((word for word in arguments if word in UPDATE_MODES), "")
        return f"no test ran{f' (the mode is written --update-baselines={mode})' if mode else ''}"
    expected = [
        work
        for node, test in book.results.items()
        if not book.answering_for(node).isdisjoint(book.failed_as_expected)
        for work in test.workloads
        if options.update == "all" or any(one.verdict is Verdict.NEW for one in work.judgements)
    ]
    if expected:
        tests = "its test is" if len(expected) == 1 else "their tests are"
        return f"{numbered(len(expected), 'workload')} not recorded: {tests} expected to fail"
    if options.update == "new":
        return "every workload has one"
    untimed = any(one.status == "static only" for one in book.evidence)
    other_work = sum(verdict is Verdict.NOT_COMPARABLE for verdict in verdicts_of(book.evidence).values())
    if untimed and other_work:
        those = numbered(other_work, "workload", "is", "are")
        command = with_flags("pytest --update-baselines NODEID", options.repeated)
        return (
            f"{those} NOT-COMPARABLE with the times on record. To record other work, name its test on a machine with a "
            f"GPU: {command}"
        )
    if options.update == "all" or all(judgement.verdict is Verdict.UNCHANGED for judgement in book.judgements):
        return "all are up to date"
    return "nothing is proven to have changed (a test given by its node id is recorded all the same)"


def next_steps(evidence: Sequence[TestEvidence], options: Options) -> list[str]:
    """What a reader of a red or an undecided run would do next; nothing where every workload passes."""
    if options.update or options.is_child:
        return []
    verdicts = verdicts_of(evidence)
    judged = [one for test in evidence for work in test.workloads for one in work.judgements]
    red = [key for key, verdict in verdicts.items() if verdict is not None and verdict.is_regression]
    if red:
        regressed = [one for one in judged if one.verdict.is_regression]
        accept = (
            ""
            if options.against
            else f"; accept what is intended: {with_flags(accepting_command(regressed), options.repeated)}"
        )
        why = f"gpuperf explain {shlex.quote(red[0].node_id)}"
        return [f"next: see why: {why}; fix it, and run {_again(options)}{accept}"]
    if any(one.is_undecided for one in judged):
        return [f"next: give what is undecided more time: {_again(options)} --gpuperf-budget=4"]
    return []


def _again(options: Options) -> str:
    """The command that judges failed tests as this run did: by counters too, and against the same opponent."""
    words = ["pytest", "--gpuperf"] if options.enabled else ["pytest"]
    if options.ncu:
        words.append(f"--gpuperf-ncu={','.join(options.ncu)}")
    if options.against:
        words.append(f"--gpuperf-against={options.against}")
    return f"{with_flags(shlex.join(words), options.repeated)} --lf"


def no_gpu_line(evidence: Sequence[TestEvidence], *, gates: bool) -> list[str]:
    """What a run without a GPU leaves out, and, the only time in the summary, why there is none."""
    stopped = [one for one in evidence if one.status == "static only"]
    if not stopped:
        return []
    why = stopped[0].reason.partition(";")[0].partition(" (")[0]
    if not gates:
        return [f"counters need a GPU: {why}"]
    return [f"timing needs a GPU: {_judged_without(evidence)} ({why}; gpuperf doctor says more)"]


def _judged_without(evidence: Iterable[TestEvidence]) -> str:
    """Counts of workloads that a run without a GPU has judged, and of those that it could not judge."""
    has_code = [bool(work.static) for one in evidence for work in one.workloads]
    judged = numbered(sum(has_code), "workload", "was", "were") + " judged by static evidence only"
    callables = numbered(has_code.count(False), "callable", "has", "have")
    if all(has_code):
        return judged
    return f"{judged}, {callables} none" if any(has_code) else f"{callables} no static evidence"


# --- undecided -----------------------------------------------------------------------------------

UNDECIDED_SHARE = 0.2
LEAST_UNDECIDED = 3
"""Number and share of inconclusive workloads beyond which the summary remarks on the machine."""


def undecided_lines(book: Book, outcome: Outcome) -> list[str]:
    """Remarks on what cannot be decided: again and again, and where it is of many, not for what their authors did."""
    again = [
        f"{name} is INCONCLUSIVE for the {_ordinal(count)} run in a row: each run is a try of its own, and one that "
        "passes proves it no more than those before; a larger --gpuperf-budget, or another GPU, decides it"
        for name, count in outcome.undecided.items()
        if count > 1
    ]
    return [*again, *_many_undecided(book)]


def _ordinal(count: int) -> str:
    """``2nd``, ``3rd``, ``11th``, ``21st``"""
    last = 0 if 10 <= count % 100 <= 20 else count % 10
    return f"{count}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


def _many_undecided(book: Book) -> list[str]:
    times = [judgement for judgement in book.judgements if judgement.kind == "time"]
    undecided = sum(judgement.is_undecided for judgement in times)
    if undecided < LEAST_UNDECIDED or undecided <= UNDECIDED_SHARE * len(times):
        return []
    return [
        f"{undecided} of {len(times)} workloads were undecided: the machine is the finding, not the code. "
        "gpuperf doctor and gpuperf selftest say more about it"
    ]
