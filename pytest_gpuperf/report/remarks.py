"""Remarks at the end of a run, each once, and the next steps."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.time_record import CALLABLE
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import UPDATE_MODES, Options
from pytest_gpuperf.report.document import Row
from pytest_gpuperf.report.order import counted
from pytest_gpuperf.results import Results

STALE = "the baseline is stale: accept the gain with {accept}, or an equal loss later goes unnoticed"
"""``{accept}`` is an ``accepting_command``."""
WITHOUT_CUPTI = (
    "CUPTI is not available (gpuperf doctor says why): CUDA {timer} measure the times. Changes of kernels shorter than "
    "20 us are harder to detect, and the kernels of a callable are not seen"
)


def run_remarks(results: Results, outcome: Outcome, options: Options) -> list[str]:
    """Remarks on the run as a whole."""
    evidence = [one for one in results.evidence if one.workloads]
    lines = []
    if not (options.update or options.strict or options.against):
        lines += stale_lines(evidence, options.repeated)
    lines += [*_no_gpu(evidence, gates=options.gates), *_slower_timer(evidence, options)]
    return [*lines, *outcome.left_out]


def machine_lines(evidence: Iterable[TestEvidence]) -> list[str]:
    """GPUs and timers that the times come from."""
    sessions = {one.session.uuid: one.session for one in evidence if one.session is not None}
    return [
        f"{s.gpu} {s.uuid[:8]}, driver {s.driver}, {s.toolchain}, timer {s.timer} "
        f"(tick {s.tick_ns:g} ns, overhead {s.overhead_ns:.0f} ns)"
        for s in sessions.values()
    ]


def stale_lines(evidence: Iterable[TestEvidence], repeated: Sequence[str] = ()) -> list[str]:
    """One line for all workloads that are nothing but better than their record; none if there are none."""
    gains = [
        judgement
        for one in evidence
        for work in one.workloads
        if not any(judgement.verdict.is_regression for judgement in work.judgements)
        for judgement in work.judgements
        if judgement.verdict in (Verdict.FASTER, Verdict.BETTER)
    ]
    if not gains:
        return []
    those = numbered(len({judgement.key for judgement in gains}), "workload", "is", "are")
    return [f"{those} FASTER or BETTER than the baseline: {STALE.format(accept=accepting_command(gains, repeated))}"]


def _no_gpu(evidence: Iterable[TestEvidence], *, gates: bool) -> list[str]:
    """The evidence that a run without a GPU leaves out, and why there is no GPU."""
    stopped = next((one for one in evidence if one.status == "static only"), None)
    if stopped is None:
        return []
    why = stopped.reason.partition(";")[0].partition(" (")[0]
    if not gates:
        return [f"counters need a GPU: {why}"]
    works = [work for one in evidence for work in one.workloads]
    having_code = [work for work in works if work.static]
    judged = numbered(len(having_code), "workload", "was", "were") + " judged by static evidence only"
    callables = {work.key for work in works if work.identity is not None and work.identity.launch == CALLABLE}
    if others := callables - {work.owner for work in having_code}:
        judged += f", {numbered(len(others), 'callable', 'was', 'were')} not judged"
    return [f"timing needs a GPU: {judged} ({why}; gpuperf doctor says more)"]


def _slower_timer(evidence: Iterable[TestEvidence], options: Options) -> list[str]:
    """Losses where the timer is not the best one, and no option chose it."""
    timers = {one.session.timer for one in evidence if one.session is not None} - {"cupti"}
    if not timers or options.timer != "auto":
        return []
    return [WITHOUT_CUPTI.format(timer=" and ".join({"graph": "graphs"}.get(name, name) for name in sorted(timers)))]


def counter_lines(evidence: Iterable[TestEvidence], notes: Sequence[str]) -> list[str]:
    """How many workloads passed by their counters, and the notes of collecting them."""
    judged = [judgement for one in evidence for judgement in one.judgements if judgement.kind == "counters"]
    passing = Counter(note for one in judged if one.verdict is Verdict.UNCHANGED for note in one.notes)
    return [
        *([f"counters: {counted(one.verdict for one in judged)}"] if judged else []),
        *(f"counters of {numbered(count, 'workload')}: {note}" for note, count in passing.items()),
        *(f"counters: {note}" for note in notes),
    ]


# --- commands ------------------------------------------------------------------------------------


def with_flags(command: str, repeated: Sequence[str]) -> str:
    """The command with this run's flags, so that it covers the same workloads."""
    return " ".join((command, *map(shlex.quote, repeated)))


def accepting_command(judged: Iterable[Judgement], repeated: Sequence[str], mode: str = "") -> str:
    """The update that accepts these, with flags of the run: where counters are among them, it collects them too."""
    ncu = " --gpuperf-ncu" if any(one.kind == "counters" for one in judged) else ""
    return with_flags(f"pytest{ncu} --update-baselines{mode}", repeated)


def update_line(
    results: Results, rows: Iterable[Row], outcome: Outcome, options: Options, arguments: Sequence[str]
) -> str:
    """The number of baselines that an update wrote, and why it wrote no others; ``arguments`` are the run's paths."""
    refused = [one for one in outcome.recorded if one.refused]
    recorded = {one.key for one in outcome.recorded}
    parts = [f"{numbered(len(outcome.recorded) - len(refused), 'baseline')} written"]
    parts += [f"{len(refused)} refused"] if refused else []
    new = sum(row.verdict is Verdict.NEW and row.evidence.key not in recorded for row in rows)
    if new:
        parts[-1] += (
            f": {numbered(new, 'workload')} not recorded: a test that fails, or is expected to, records nothing"
        )
    elif not outcome.recorded:
        parts[-1] += f": {_why_none(results, options, arguments)}"
    return ", ".join(parts)


def _why_none(results: Results, options: Options, arguments: Sequence[str]) -> str:
    if not results.tests_run:
        mode = next((word for word in arguments if word in UPDATE_MODES), "")
        return f"no test ran{f' (the mode is written --update-baselines={mode})' if mode else ''}"
    if not results.judgements:
        return "every test with a workload failed"
    failed = "; failed tests record nothing" if results.failures else ""
    if options.update == "new" or all(one.verdict is Verdict.UNCHANGED for one in results.judgements):
        return f"all are up to date{failed}"
    command = with_flags("pytest --update-baselines=all NODEID", options.repeated)
    return f"no change is proven; to record a test anyway, run this on a machine with a GPU: {command}{failed}"


def next_steps(rows: Iterable[Row], options: Options) -> list[str]:
    """The next steps of a reader of a run; nothing where every workload passes."""
    judged = [one for row in rows for one in row.evidence.judgements]
    red = [one for one in judged if one.verdict.is_regression]
    new = [one for one in judged if one.verdict is Verdict.NEW and not one.renamed]
    steps = []
    if red:
        intended = [one for one in red if one.may_be_intended]
        accept = f"; accept an intended change: {accepting_command(intended, options.repeated)}" if intended else ""
        why = f"gpuperf explain {shlex.quote(red[0].key.node_id)}{' --details' if options.ncu else ''}"
        steps.append(f"next: see why: {why}; fix it, and run {_again(options)}{'' if options.against else accept}")
    elif any(one.is_undecided for one in judged):
        steps.append(
            f"next: give undecided workloads more time: {_again(options)} --gpuperf-budget=4; where many stay "
            "undecided, the machine is too noisy: gpuperf doctor"
        )
    if new:
        those = numbered(len({one.key for one in new}), "new workload")
        record = f"next: record {those}: {accepting_command(new, options.repeated, '=new')}, and commit the files"
        steps.append(f"{those} without a counterpart in {options.against}" if options.against else record)
    return steps


def _again(options: Options) -> str:
    """The command that judges failed tests as this run did: by counters too, and against the same revision."""
    parts = ["pytest", "--gpuperf"] if options.enabled else ["pytest"]
    if options.ncu:
        parts.append(f"--gpuperf-ncu={','.join(options.ncu)}")
    return f"{with_flags(shlex.join([*parts, *options.against_flags]), options.repeated)} --lf"
