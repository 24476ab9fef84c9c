"""The reports of all shards of a run, as the report and the exit status of one run of all tests.

Refused is what would leave a hole: a shard that is missing, given twice, unfinished, or of another run.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.repository import Commit
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.judge.vanished import Vanished
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.options import Options
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.document import Document, RunReport, document_of
from pytest_gpuperf.report.run_part import Missed, RunPart
from pytest_gpuperf.session import whole_run
from pytest_gpuperf.session.end_of_run import (
    EXIT_NOTHING_MEASURED,
    EXIT_VANISHED,
)
from pytest_gpuperf.session.missed_records import missed_lines
from pytest_gpuperf.session.run_parts import StrangeOption, options_of
from pytest_gpuperf.session.taken_back import EXIT_STATUSES

OF_A_SHARD = (pytest.ExitCode.OK, EXIT_NOTHING_MEASURED, EXIT_VANISHED)
"""Exit statuses of a shard that say nothing beyond what its report says: the merged run has its own."""


NAMED = 8
"""Most shards that are named as missing."""


class MergeRefused(GpuperfError):
    """The reports are not those of all shards of one run; the message says which, and what to do."""


@dataclasses.dataclass(frozen=True)
class ShardReport:
    """One shard's report."""

    file: str
    """As the user names it."""
    report: RunReport
    part: RunPart
    index: int


class MergedRun(NamedTuple):
    """All shards together."""

    document: Document
    failures: Mapping[str, str]
    """By the node id of a test that failed: why, in a line."""


def merge(reports: Sequence[tuple[str, RunReport]]) -> MergedRun:
    """One run of all shards; ``reports`` are named by their files.  Raises ``MergeRefused``."""
    shards = _all_of_one_run(reports)
    first = shards[0].part
    options, book = _options(shards[0]), _book(shards)
    models = {model for one in shards for model in one.part.models}
    missed = _missed(shards, book)
    red, remarks = missed_lines(
        missed, book, options, targets={*first.archs, *models}, root=Path(first.root),
        has_gpu=bool(models) or options.require_gpu, revision=first.revision,
    )  # fmt: skip
    outcome = Outcome(
        vanished=tuple(red) if first.full else (), left_out=(*remarks, *(() if first.full else red)),
        machine=whole_run.of_the_machine(book), elsewhere=missed.elsewhere,
    )  # fmt: skip
    status = _exit_status(shards, book, outcome, options)
    head = shards[0].report
    machines = dict.fromkeys(line for one in shards for line in one.report.machines)
    document = document_of(
        book.evidence, date=max(one.report.date for one in shards), plugin=head.plugin,
        task=f"{len(shards)} shards: {terminal.header(options)}", exit_status=status, problems=outcome.errors,
        warnings=terminal.run_remarks(book, outcome, options), machines=machines,
        commit=Commit(head.commit, head.dirty), branch=head.branch,
        code=[code for one in shards for code in one.report.code],
    )  # fmt: skip
    return MergedRun(document, book.failures)


def _options(first: ShardReport) -> Options:
    """Of all shards, which have them alike."""
    try:
        return options_of(first.part)
    except StrangeOption as problem:
        raise MergeRefused(
            f"{first.file}: {problem}: merge by the version that the shards ran, {quoted(first.report.plugin)}"
        ) from None


def _exit_status(shards: Sequence[ShardReport], book: Book, outcome: Outcome, options: Options) -> int:
    """In the order in which ``end_of_run`` decides; completes ``outcome``."""
    others = [one.report.exit_status for one in shards if one.report.exit_status not in OF_A_SHARD]
    status = int(pytest.ExitCode.TESTS_FAILED) if book.any_failed else max(others, default=0)
    outcome.nothing = whole_run.nothing_measured(book, options, passed=status == pytest.ExitCode.OK)
    found = (
        (outcome.nothing, EXIT_NOTHING_MEASURED),
        (outcome.vanished or outcome.elsewhere, EXIT_VANISHED),
    )
    return status or next((own for problem, own in found if problem), 0)


def _book(shards: Sequence[ShardReport]) -> Book:
    evidence = sorted((test for one in shards for test in one.report.tests), key=lambda one: (one.module, one.test))
    failures = {node: why for one in shards for node, why in one.part.failures.items()}
    return Book.merged(evidence, failures, sum(one.part.tests_run for one in shards))


def _missed(shards: Sequence[ShardReport], book: Book) -> Missed:
    """What no shard came to: of a fixture that tests of several share, one may have judged what another missed."""
    parts = [one.part.missed for one in shards]
    judged = {one.node_id for one in book.evidence if fixture_of(one.test)}
    missed = [one for part in parts for one in part.candidates if one.record.key.node_id not in judged]
    records = {(one.record, one.cause): one for one in missed}
    return Missed(
        candidates=tuple(sorted(records.values(), key=_as_on_record)),
        targets_gone=tuple(dict.fromkeys(target for part in parts for target in part.targets_gone)),
        unreadable=next((part.unreadable for part in parts if part.unreadable), ""),
        nothing_on_record=next((part.nothing_on_record for part in parts if part.nothing_on_record), ""),
        elsewhere=next((part.elsewhere for part in parts if part.elsewhere), ""),
    )  # fmt: skip


def _as_on_record(one: Vanished) -> tuple[bool, str, Key]:
    """The order of one run: machine code before times."""
    return one.record.kind != "static", one.record.target, one.record.key


# --- what is refused -------------------------------------------------------------------------------


def _all_of_one_run(reports: Sequence[tuple[str, RunReport]]) -> list[ShardReport]:
    """In the order of their numbers.  Raises ``MergeRefused``."""
    shards = sorted((_shard(file, report) for file, report in reports), key=lambda one: one.index)
    of = {(one.report.shard or (0, 0))[1]: one for one in shards}
    if len(of) > 1:
        sizes = ", ".join(f"{one.file} is of {count}" for count, one in of.items())
        raise MergeRefused(f"the reports are of runs with another number of shards: {sizes}: give those of one run")
    for one, other in itertools.pairwise(shards):
        if one.index == other.index:
            raise MergeRefused(f"{one.file} and {other.file} are both shard {one.index}: give each shard once")
    size = next(iter(of), 0)
    if len(shards) < size or not shards:
        raise MergeRefused(
            f"the report of {_missing_of(shards, size)} is missing: did its job end early? Run it again, and give all "
            "reports"
        )
    _refuse_differences(shards)
    _refuse_targets(shards)
    return shards


def _missing_of(shards: Sequence[ShardReport], size: int) -> str:
    """The first shards of ``size`` that have no report, in words."""
    there = {one.index for one in shards}
    first = itertools.islice((index for index in range(1, size + 1) if index not in there), NAMED)
    more = size - len(there) - NAMED
    words = ", ".join(f"{index}/{size}" for index in first) or "all shards"
    return f"{words} and {more} more" if more > 0 else words


def _shard(file: str, report: RunReport) -> ShardReport:
    if report.shard is None or report.part is None:
        raise MergeRefused(f"{file} is the report of a whole run: gpuperf merge takes those of --gpuperf-shard=I/N")
    index, size = report.shard
    if not 1 <= index <= size:
        raise MergeRefused(f"{file} is of no run: there is no shard {index} of {size}")
    if not 0 <= report.exit_status < EXIT_STATUSES:
        raise MergeRefused(f"{file} is of no run: none ends with the status {report.exit_status}. Run the shard again")
    if not report.part.complete:
        raise MergeRefused(
            f"{file}: shard {index} did not come to its end (exit status {report.exit_status}), so some of "
            "its tests are not judged: run it again, without -x and --maxfail"
        )
    return ShardReport(file, report, report.part, index)


ALIKE: Mapping[str, tuple[Callable[[ShardReport], object], str]] = {
    "plugin versions": (lambda one: one.report.plugin, "install the same version everywhere"),
    "commits": (lambda one: one.report.commit, "check the same commit out in every job"),
    "changes of tracked files": (
        lambda one: one.part.changes, "start each from the same clean checkout, and keep what runs write out of git"
    ),
    "revisions to compare with": (lambda one: one.part.revision, "name a commit, which does not move"),
    "static targets": (lambda one: one.part.archs, "name them all by --gpuperf-arch"),
    "scopes": (
        lambda one: "all tests" if one.part.full else "chosen tests", "give all shards the same paths, -k and -m"
    ),
    "selections of tests": (
        lambda one: one.part.plan, "give all shards the same paths, -k and -m, the same packages and the same baselines"
    ),
}  # fmt: skip
"""What all shards of a run have alike, by its name; and what to do where they differ."""


def _refuse_differences(shards: Sequence[ShardReport]) -> None:
    first = shards[0]
    for other in shards[1:]:
        for what, (value, remedy) in ALIKE.items():
            mine, theirs = value(first), value(other)
            if mine != theirs:
                told = "" if what == "selections of tests" else f" ({_said(mine)} and {_said(theirs)})"
                raise MergeRefused(f"{first.file} and {other.file} are of different {what}{told}: {remedy}")
        for field in sorted({*first.part.options, *other.part.options}):
            mine, theirs = first.part.options.get(field), other.part.options.get(field)
            if mine != theirs:
                raise MergeRefused(
                    f"{first.file} and {other.file} differ in the option {field} ({_said(mine)} and {_said(theirs)}): "
                    "give all shards the same options"
                )


def _refuse_targets(shards: Sequence[ShardReport]) -> None:
    """Shards on GPUs of different models, or some on none."""
    timed = [one for one in shards if one.part.models]
    for other in timed[1:]:
        if other.part.models != timed[0].part.models:
            raise MergeRefused(
                f"{timed[0].file} and {other.file} are of different GPU models ({_said(timed[0].part.models)} and "
                f"{_said(other.part.models)}): run all shards on GPUs of one model"
            )
    without = next((one for one in shards if one.part.without_gpu), None)
    if timed and without is not None:
        raise MergeRefused(
            f"{without.file} is of a machine without a usable GPU, {timed[0].file} of one with a GPU: run all shards "
            "on GPUs of one model; --gpuperf-require-gpu tells at once"
        )


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value) or "none"
