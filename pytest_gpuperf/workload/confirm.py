"""The second process: it measures slower and worse workloads again before their test is reported.

Where code was placed in one process cannot be randomised away inside it, so no test fails on the word of one.  The
other process runs the same gate, at a looser error rate, and leaves what it found; here is what becomes of the two.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect, not_confirmed
from pytest_gpuperf.model.task import ConfirmTask, SuspectPlace
from pytest_gpuperf.model.time_record import CALLABLE
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process.children import LOG_LINES, errors_in, log_lines, run_task
from pytest_gpuperf.revision.against import AGAINST
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, TestRecord
from pytest_gpuperf.timing.compare import BUDGETS

TIMEOUT_S = 120.0
"""Least bound of a confirming process, without the budgets of its workloads."""
LIMIT_FACTOR = 3.0
"""By so much longer than here its test may take."""
MOST_CONFIRMED = 20
"""Tests of a process whose regressions are confirmed: a change that slows all tests starts no process for each."""


# --- in the confirming process -------------------------------------------------------------------


def write_result(task: ConfirmTask, finding: Confirmation) -> None:
    """Write a finding for the process that gates; ends the test, by ``CheckedOnly``, if it was the last."""
    if finding.place not in task.places:
        return
    files = task.files()
    write_whole(files[task.places.index(finding.place)], msgspec.json.encode(finding))
    if all(file.exists() for file in files):
        raise CheckedOnly("every workload that waits for its confirmation has been measured")


# --- in the process that gates -------------------------------------------------------------------


def confirm(item: pytest.Item, run: Run, test: TestRecord) -> None:
    """Settle the suspects of one test: their judgements in ``test`` become final."""
    waiting: dict[SuspectPlace, Suspect] = {one.place: one for one in run.pop_suspects()}
    found: dict[SuspectPlace, list[Confirmation]] = {place: [] for place in waiting}
    slower = False
    while waiting:
        findings, problem = _in_another_process(item, run, list(waiting.values()))
        for place, suspect in list(waiting.items()):
            judged = _final_judgement(suspect, found[place], findings.get(place), problem)
            if judged is not None:
                del waiting[place]
                slower |= judged.verdict.is_regression
                _replace(test, judged)
    run.confirmed += slower


def give_up(run: Run, test: TestRecord) -> None:
    """End the wait of a test that was ended before it could be confirmed."""
    for suspect in run.pop_suspects():
        _replace(test, _unsettled(suspect, "the test failed or was stopped before its end"))


def _final_judgement(
    suspect: Suspect, found: list[Confirmation], finding: Confirmation | None, problem: str
) -> Judgement | None:
    if finding is None:
        return _unsettled(suspect, problem)
    if finding.identity != suspect.identity and not finding.identity.same_execution(suspect.identity):
        return _unsettled(suspect, "a second process ran other code or other arguments: seed random inputs")
    if finding.problem:
        return _unsettled(suspect, f"a second process could not pair the two: {finding.problem}")
    found.append(finding)
    return suspect.final_verdict(found)


def _unsettled(suspect: Suspect, why: str) -> Judgement:
    """A loss stands, and a gain does not, where no second process can speak."""
    if suspect.judgement.verdict.is_regression:
        return not_confirmed(suspect.judgement, why)
    return msgspec.structs.replace(suspect.judgement, verdict=Verdict.SAME, reason=f"not confirmed: {why}")


def _in_another_process(
    item: pytest.Item, run: Run, suspects: Sequence[Suspect]
) -> tuple[Mapping[SuspectPlace, Confirmation], str]:
    """The findings of another process on each suspect, and why some are missing."""
    if run.confirmed >= MOST_CONFIRMED:
        return {}, f"{MOST_CONFIRMED} tests of this process were confirmed already; run this test alone"
    limit_s = TIMEOUT_S + LIMIT_FACTOR * (time.perf_counter() - run.test_began)
    limit_s += sum(BUDGETS * one.budget_s for one in suspects)
    with TemporaryDirectory(prefix="gpuperf-confirm-") as name:
        callables = [one.place.key for one in suspects if one.identity.launch == CALLABLE]
        task = ConfirmTask(
            folder=Path(name), places=tuple(one.place for one in suspects),
            other_first=callables[0] if callables and secrets.randbits(1) else None,
        )  # fmt: skip
        problem = _run(item, run, task, limit_s)
        found = []
        for file in task.files():
            with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):  # not reached, or broken off
                found.append(msgspec.json.decode(file.read_bytes(), type=Confirmation))
    return {one.place: one for one in found}, problem


def _run(item: pytest.Item, run: Run, task: ConfirmTask, limit_s: float) -> str:
    """Run the confirming process; why it left nothing, if it leaves nothing."""
    log = task.folder / "log"
    if AGAINST in item.config.stash:
        item.config.stash[AGAINST].save_evidence()
    run.give_memory_back()  # the child needs as much memory as this test did
    try:
        with run.device.lock():  # not by the child: what it would wait for others is not its own time
            status = run_task(item.config, task, log, limit_s, run.child_environment())
    except (LockError, OSError) as error:
        return f"a second process could not be started ({error})"
    if status == 0:
        return "the second process did not reach this workload"
    lines = log_lines(log)
    if not all(file.exists() for file in task.files()):  # else its own gate failed it, which it was to tell
        item.add_report_section("call", "gpuperf confirmation", "\n".join(lines[-LOG_LINES:]))
    ended = f"was not done after {limit_s:.0f} s" if status is None else f"failed (pytest exit status {status})"
    return ": ".join([f"the second process {ended}", *errors_in(lines)[:1]])


def _replace(test: TestRecord, judgement: Judgement) -> None:
    """Put a final judgement in the place of the one that waited."""
    work = test.workloads[judgement.key.workload]
    kept = tuple(judgement if one.kind == judgement.kind else one for one in work.judgements)
    test.add(msgspec.structs.replace(work, judgements=kept))
