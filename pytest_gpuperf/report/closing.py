"""The last lines of a summary: how many workloads had which verdict, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import UPDATE_MODES, Options
from pytest_gpuperf.report.order import counted, rank_of
from pytest_gpuperf.report.remarks import accepting_command, with_flags
from pytest_gpuperf.results import Results


def verdicts_of(evidence: Iterable[TestEvidence]) -> dict[Key, Verdict | None]:
    """Of each workload the verdict to know first, on any evidence; None where nothing was judged."""
    found: dict[Key, Verdict | None] = {}
    for one in evidence:
        for work in one.workloads:
            found[work.key] = min((judged.verdict for judged in work.judgements), key=rank_of, default=None)
    return found


def count_line(verdicts: Sequence[Verdict | None]) -> str:
    """``524 workloads: 256 WORSE, 268 UNCHANGED``."""
    return f"{numbered(len(verdicts), 'workload')}: {counted(verdicts)}"


def none_written(book: Results, options: Options, arguments: Sequence[str]) -> str:
    """The message of an update that had nothing to write; ``arguments`` are the run's paths."""
    verdicts = Counter(verdicts_of(book.evidence).values())
    if not book.tests_run:
        mode = next((word for word in arguments if word in UPDATE_MODES), "")
        why = f"no test ran{f' (the mode is written --update-baselines={mode})' if mode else ''}"
    elif new := verdicts[Verdict.NEW]:
        why = f"{numbered(new, 'workload')} not recorded: a test that fails, or is expected to, records nothing"
    elif not book.judgements:
        why = "every test with a workload failed"
    elif options.update == "new":
        why = "every workload has one"
    elif options.update == "all" or all(judgement.verdict is Verdict.UNCHANGED for judgement in book.judgements):
        why = "all are up to date"
    else:
        why = "nothing is proven to have changed (a test given by its node id is recorded all the same)"
    return f"0 baselines written: {why}{'; failed tests record nothing' if book.failures and book.judgements else ''}"


def next_steps(evidence: Sequence[TestEvidence], options: Options) -> list[str]:
    """The next step of a reader of a red or an undecided run; nothing where every workload passes."""
    if options.update or options.is_child:
        return []
    verdicts = verdicts_of(evidence)
    judged = [one for test in evidence for work in test.workloads for one in work.judgements]
    red = [key for key, verdict in verdicts.items() if verdict is not None and verdict.is_regression]
    if red:
        regressed = [one for one in judged if one.verdict.is_regression]
        command = accepting_command(regressed, options.repeated)
        accept = "" if options.against else f"; accept an intended change: {command}"
        why = f"gpuperf explain {shlex.quote(red[0].node_id)}"
        return [f"next: see why: {why}; fix it, and run {_again(options)}{accept}"]
    if any(one.is_undecided for one in judged):
        return [f"next: give undecided workloads more time: {_again(options)} --gpuperf-budget=4"]
    return []


def _again(options: Options) -> str:
    """The command that judges failed tests as this run did: by counters too, and against the same revision."""
    words = ["pytest", "--gpuperf"] if options.enabled else ["pytest"]
    if options.ncu:
        words.append(f"--gpuperf-ncu={','.join(options.ncu)}")
    if options.against:
        words.append(f"--gpuperf-against={options.against}")
    return f"{with_flags(shlex.join(words), options.repeated)} --lf"


def no_gpu_line(evidence: Sequence[TestEvidence], *, gates: bool) -> list[str]:
    """The evidence that a run without a GPU leaves out, and, the only time in the summary, why there is no GPU."""
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


UNDECIDED_SHARE = 0.2
LEAST_UNDECIDED = 3
"""Number and share of inconclusive workloads beyond which the summary remarks on the machine."""


def undecided_line(judgements: Iterable[Judgement]) -> list[str]:
    """A remark on the machine, where many times are undecided."""
    times = [judgement for judgement in judgements if judgement.kind == "time"]
    undecided = sum(judgement.is_undecided for judgement in times)
    if undecided < LEAST_UNDECIDED or undecided <= UNDECIDED_SHARE * len(times):
        return []
    return [
        f"{undecided} of {len(times)} workloads were undecided: this machine is too noisy. "
        "gpuperf doctor and gpuperf selftest say more about it"
    ]
