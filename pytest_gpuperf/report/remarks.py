"""Remarks at the end of a run, each said once.

Baselines that the code beats, counters, renamed workloads, and causes that
advice sees in kernels that changed and did not fail.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.message import gain_words
from pytest_gpuperf.report.order import deduplicated

NAMED = 3
"""Workloads that a line names of many."""
STALE = "the baseline is stale: accept the gain with {accept}, or a later loss of as much goes unseen"
"""``{accept}`` is an ``accepting_command``."""


def stale_lines(evidence: Iterable[TestEvidence], repeated: Sequence[str] = ()) -> list[str]:
    """One line for all workloads that are nothing but better than their record; none if there are none."""
    works = [work for one in evidence for work in one.workloads]
    gains = [
        judgement
        for work in works
        if not any(judgement.verdict.is_regression for judgement in work.judgements)
        for judgement in work.judgements
        if judgement.verdict in (Verdict.FASTER, Verdict.BETTER)
    ]
    if not gains:
        return []
    those = numbered(len({judgement.key for judgement in gains}), "workload", "is", "are")
    return [f"{those} FASTER or BETTER than on record: {STALE.format(accept=accepting_command(gains, repeated))}"]


def accepting_command(judged: Iterable[Judgement], repeated: Sequence[str], mode: str = "") -> str:
    """The update that accepts these, with flags of the run: where counters are among them, it collects them too."""
    ncu = " --gpuperf-ncu" if any(one.kind == "counters" for one in judged) else ""
    return with_flags(f"pytest{ncu} --update-baselines{mode}", repeated)


def with_flags(command: str, repeated: Sequence[str]) -> str:
    """The command with the flags that it needs to be about what this run judged."""
    return " ".join((command, *map(shlex.quote, repeated)))


def renamed_lines(evidence: Iterable[TestEvidence]) -> list[str]:
    """A line for each NEW workload that goes on for a record without a test; by its time, where that was taken."""
    found: dict[Key, dict[str, str]] = {}
    for one in evidence:
        for judgement in one.judgements:
            if judgement.renamed:
                found.setdefault(judgement.key, {})[judgement.kind] = judgement.reason
    return [f"{key}: NEW, {reasons.get('time') or next(iter(reasons.values()))}" for key, reasons in found.items()]


def counter_lines(evidence: Iterable[TestEvidence], notes: Sequence[str], options: Options) -> list[str]:
    """How many workloads passed by their counters, which have none and why, and the notes of collecting them."""
    judged = [judgement for one in evidence for judgement in one.judgements if judgement.kind == "counters"]
    verdicts = Counter(judgement.verdict for judgement in judged)
    lines = ["counters: " + ", ".join(f"{n} {verdict.value}" for verdict, n in verdicts.items())] if judged else []
    if verdicts[Verdict.NEW] and not options.update:
        those = numbered(verdicts[Verdict.NEW], "workload", "has", "have")
        command = with_flags("pytest --update-baselines=new --gpuperf-ncu", options.repeated)
        lines.append(f"{those} no counters on record: record them with {command} and commit the files")
    reasons = Counter(judgement.reason for judgement in judged if judgement.verdict is Verdict.NOT_MEASURED)
    lines += [f"{numbered(count, 'workload', 'has', 'have')} no counters: {why}" for why, count in reasons.items()]
    passing = Counter(note for one in judged if one.verdict is Verdict.UNCHANGED for note in one.notes)
    lines += [f"counters of {numbered(count, 'workload')}: {note}" for note, count in passing.items()]
    return [*lines, *(f"counters: {note}" for note in notes)]


LEAST_GAIN = 0.1
"""A cause that would gain less is left to ``gpuperf explain``: by the machine code alone, gains are estimates."""


def hints(evidence: Iterable[TestEvidence], *, most: int | None = None) -> list[str]:
    """One line for each likely cause in code that changed, where no verdict says that it got worse; fails nothing.

    ``most`` lines at most, equal ones once; None for all.
    """
    works = [work for test in evidence for work in test.workloads]
    if most is None:
        return [f"{work.key}: {line}" for work in works for line in hints_of(work)]
    return deduplicated([(str(work.key), line) for work in works for line in hints_of(work)], most)


def hints_of(work: WorkloadEvidence) -> list[str]:
    """Hints of one workload."""
    verdicts = {judgement.verdict for judgement in work.judgements}
    if any(verdict.is_regression for verdict in verdicts):
        return []
    result = "its verdict is open" if Verdict.INCONCLUSIVE in verdicts else "nothing that gates got worse"
    return [
        f"the machine code changed, and {result}; likely {one.cause} on {one.arch} ({gain_words(one)}): "
        f"gpuperf explain {shlex.quote(work.key.node_id)}"
        for one in work.advice
        if one.gain >= LEAST_GAIN and not (one.counted or one.same_code or one.outweighed)
    ]
