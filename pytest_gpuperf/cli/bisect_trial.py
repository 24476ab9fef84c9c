"""What one commit of a bisection came to against the good end, by the evidence of its run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Iterator, Sequence

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.judge.bisection import Answer
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.message import workload_lines

GOOD = frozenset({Verdict.UNCHANGED, Verdict.SAME, Verdict.FASTER, Verdict.BETTER})
BAD = frozenset({Verdict.SLOWER, Verdict.WORSE})
MOST_REASON = 200
"""Characters of a reason that a line tells."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """What one commit came to against the good end."""

    answer: Answer
    code: Hashable | None
    """What its workloads run; None where the test did not come to any."""
    why: str
    """In a few words: a verdict, a ratio, an error."""
    words: tuple[str, ...] = ()
    """The verdicts that are red, in the words of a failing test."""
    timed: bool = False
    """A GPU took times for it."""
    red: frozenset[Key] = frozenset()
    """The workloads that are slower."""


def trial_of(tests: Sequence[TestEvidence], failure: str, looked_for: Collection[Key] = ()) -> Trial:
    """What the evidence of a run against the good end says; ``failure`` is what a test failed for, a verdict or not.

    ``looked_for`` are the workloads whose loss is sought, by default all: one of others that was taken back is another.
    """
    judged = [(work, one) for test in tests for work in test.workloads for one in work.judgements]
    timed = any(test.device is not None for test in tests)
    works = [work for test in tests for work in test.workloads]
    code = tuple(sorted(map(_code, works))) if works and all(work.static for work in works) else object()
    slower = [(work, one) for work, one in judged if one.verdict in BAD]
    red = [(work, one) for work, one in slower if not looked_for or work.key in looked_for]
    good = [(work, one) for work, one in judged if one.verdict in GOOD]
    open_ones = [one for work, one in judged if one.verdict not in BAD | GOOD and not (good and _is_added(work))]
    if red:
        worst = next((one for _, one in red if one.kind == "time"), red[0][1])
        return Trial("bad", code, _said(worst), tuple(_words(red)), timed, frozenset(work.key for work, _ in red))
    if open_ones:
        return Trial("undecided", code, _with_reason(open_ones[0]), timed=timed)
    if slower:
        return _of_others(slower, [one for work, one in good if work.key in looked_for], code, timed=timed)
    if failure or not judged:
        return Trial("undecided", code if judged else None, failure or "nothing was judged", timed=timed)
    return Trial("good", code, _said(good[0][1]), timed=timed)


def _of_others(
    slower: Sequence[tuple[WorkloadEvidence, Judgement]], good: Sequence[Judgement], code: Hashable, *, timed: bool
) -> Trial:
    """Of a commit at which other workloads are slower than those whose loss is sought, which may be ``good``."""
    work, worst = slower[0]
    words = f"{quoted(str(work.key))} {_said(worst)}, and not so at the bad end"
    return Trial("good" if good else "undecided", code, words, timed=timed)


def _with_reason(judgement: Judgement) -> str:
    return f"{_said(judgement)} ({quoted(judgement.reason, MOST_REASON)})" if judgement.reason else _said(judgement)


def _is_added(work: WorkloadEvidence) -> bool:
    """The good end has nothing of it; or it is equal code, which the good end did not time."""
    return {one.verdict for one in work.judgements} <= {Verdict.NEW, Verdict.UNCHANGED}


def _code(work: WorkloadEvidence) -> tuple[str, str]:
    """A workload, and what it runs."""
    codes = ",".join(f"{arch}={record.profile.code_hash}" for arch, record in sorted(work.static.items()))
    launch = f"{work.identity.launch} {work.identity.arguments}" if work.identity is not None else ""
    return str(work.key), f"{codes} {launch}"


def _said(judgement: Judgement) -> str:
    time_ = judgement.time
    if time_ is None or time_.ratio is None:
        return f"{judgement.verdict.value} on {judgement.target}"
    interval = f" [{time_.interval[0]:.4f}, {time_.interval[1]:.4f}]" if time_.interval else ""
    return f"{judgement.verdict.value} x{time_.ratio:.4f}{interval} on {judgement.target}"


def _words(red: Sequence[tuple[WorkloadEvidence, Judgement]]) -> Iterator[str]:
    for key in dict.fromkeys(work.key for work, _ in red):
        of_key = [(work, one) for work, one in red if work.key == key]
        yield from workload_lines([one for _, one in of_key], of_key[0][0].advice)
