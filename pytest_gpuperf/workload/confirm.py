"""The second process: it measures slower and worse workloads again before their test is reported.

Where code was placed in one process cannot be randomised away inside it, so no test fails on the word of one.  The
other process runs the same gate, at a looser error rate, and leaves what it found; here is what becomes of the two.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.task import ConfirmTask, ConfirmTest, SuspectPlace
from pytest_gpuperf.model.time_record import CALLABLE
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process.children import child_command
from pytest_gpuperf.process.serving import START_S, ServingChild
from pytest_gpuperf.results import may_measure
from pytest_gpuperf.revision.evidence import RevisionBaselines
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.timing.compare import BUDGETS
from pytest_gpuperf.timing.process_reference import OtherSideLost, Started, TestEnded

TIMEOUT_S = 120.0
"""Least bound of a test in the confirming process, without the budgets of its workloads."""
LIMIT_FACTOR = 3.0
"""By so much longer than here its test may take."""
MOST_CONFIRMED = 20
"""Tests of callables whose regressions are confirmed: a change that slows all of them starts no processes for each."""


def confirm(item: pytest.Item, run: Run, test: TestRecord) -> None:
    """Settle the suspects of one test by another process: their judgements in ``test`` become final."""
    found: dict[SuspectPlace, list[Confirmation]] = {one.place: [] for one in test.suspects}
    slower = False
    while test.suspects:
        findings, problem = _in_another_process(item, run, test.suspects)
        for suspect in list(test.suspects):
            judged = _final_judgement(suspect, found[suspect.place], findings.get(suspect.place), problem)
            if judged is not None:
                test.suspects.remove(suspect)
                slower |= judged.verdict.is_regression and _is_paired(suspect)
                _replace(test, judged)
    run.confirmed += slower


def give_up(test: TestRecord) -> None:
    """End the wait of a test that was ended before it could be confirmed."""
    for suspect in test.suspects:
        _replace(test, _unsettled(suspect, "the test failed or was stopped before its end"))
    test.suspects.clear()


def _is_paired(suspect: Suspect) -> bool:
    """Whether fresh processes are to speak: what a process has for life is in all of a callable's times."""
    return suspect.identity.launch == CALLABLE and not suspect.judgement.reference


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
    judged, why = suspect.judgement, f"not confirmed: {why}"
    if judged.verdict.is_regression:
        return msgspec.structs.replace(judged, notes=(why, *judged.notes))
    return msgspec.structs.replace(judged, verdict=Verdict.SAME, reason=why)


def _in_another_process(
    item: pytest.Item, run: Run, suspects: Sequence[Suspect]
) -> tuple[Mapping[SuspectPlace, Confirmation], str]:
    """The findings of another process on each suspect, and why some are missing."""
    found: dict[SuspectPlace, Confirmation] = {}
    paired = [one.place.key for one in suspects if _is_paired(one)]
    if paired and run.confirmed >= MOST_CONFIRMED:
        return found, f"{MOST_CONFIRMED} tests were confirmed by fresh processes already; run this test alone"
    limit_s = TIMEOUT_S + LIMIT_FACTOR * (time.perf_counter() - run.test_began)
    limit_s += sum(BUDGETS * one.budget_s for one in suspects)
    request = ConfirmTest(
        node_id=item.nodeid, places=tuple(one.place for one in suspects),
        other_first=paired[0] if paired and secrets.randbits(1) else None,
    )  # fmt: skip
    if paired:
        run.end_second_process()
    is_fresh = run.second_process is None
    if isinstance(run.store, RevisionBaselines):
        run.store.save(item.nodeid)
    run.give_memory_back()  # the child needs as much memory as this test did
    try:
        with run.device.lock():  # not by the child: what it would wait for others is not its own time
            link = _process_for(item, run).link
            link.send(request)
            while isinstance(answer := link.receive(Confirmation | TestEnded, limit_s), Confirmation):
                found[answer.place] = answer
        if answer.last:
            run.end_second_process()
        why = f"in a second process: {answer.why}" if answer.why else "the second process did not reach this workload"
    except LockError as error:
        return found, f"a second process could not be started ({error})"
    except OtherSideLost as problem:
        why = f"a second process: {_lost(item, run, problem)}"
    except BaseException:  # Ctrl-C, or another plugin's limit of time: it is in the middle of this test
        run.end_second_process(at_once=True)
        raise
    if is_fresh or len(found) == len(suspects):
        return found, why
    run.end_second_process()  # what its earlier tests left may be the cause: a fixture that can be set up once
    return _in_another_process(item, run, suspects)


def _process_for(item: pytest.Item, run: Run) -> ServingChild:
    """The second process, started at its first use.  Raises ``OtherSideLost``."""
    if run.second_process is None:

        def command(folder: Path, reading: int, writing: int) -> list[str]:
            task = ConfirmTask(folder=folder, reading=reading, writing=writing)
            measuring = [one.nodeid for one in item.session.items if may_measure(one)]
            return child_command(run.config, task, [*measuring, item.nodeid])

        run.second_process = ServingChild(command, run.config.invocation_params.dir, run.child_environment())
        run.second_process.link.receive(Started, START_S)
    return run.second_process


def _lost(item: pytest.Item, run: Run, problem: OtherSideLost) -> str:
    """Give the second process up: why."""
    child = run.second_process
    if child is None:  # it was not started
        return str(problem)
    why = child.explained(problem)
    item.add_report_section("call", "gpuperf confirmation", "\n".join(child.last_output()))
    run.end_second_process(at_once=True)
    return why


def _replace(test: TestRecord, judgement: Judgement) -> None:
    """Put a final judgement in the place of the one that waited."""
    work = test.workloads[judgement.key.workload]
    kept = tuple(judgement if one.kind == judgement.kind else one for one in work.judgements)
    test.add(msgspec.structs.replace(work, judgements=kept))
