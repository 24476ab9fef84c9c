"""``gpuperf report``: a run's page, Markdown or JSON, made later from what it left."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.model.base_record import schema_of
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.process import last_run
from pytest_gpuperf.process.repository import Commit
from pytest_gpuperf.report.document import SCHEMA, Document, RunReport, document_from, document_of
from pytest_gpuperf.report.files import NotWritten, write_report
from pytest_gpuperf.report.markdown import as_markdown

ENDINGS = (".html", ".md", ".json")


class ReportError(Exception):
    """There is no run to report on, or no such form; the message says what to do."""


PROBLEMS = (ReportError, NotWritten, last_run.LastRunError)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.reports, parsed.files, start=Path.cwd(), write=write)


def run(reports: Sequence[Path], files: Sequence[Path], *, start: Path, write: Callable[[str], object]) -> int:
    """Write every one of ``files`` in the form of its ending; without any, Markdown to ``write``.

    Several reports are joined: those of jobs that divided the tests of a run.
    Returns the exit status, 0.  Raises one of ``PROBLEMS``.
    """
    for file in files:
        if file.suffix not in ENDINGS:
            raise ReportError(f"{file} has none of the endings {', '.join(ENDINGS)}, by which a report has its form")
    document = joined([(path, read_report(path)) for path in reports]) if reports else of_last_run(start)
    if not files:
        write(as_markdown(document))
    for file in files:
        write(f"report written to {write_report(document, str(file))}\n")
    return 0


def joined(documents: Sequence[tuple[Path, Document]]) -> Document:
    """One run of jobs that divided its tests: all their workloads, and the worst of their exit statuses.

    ``documents`` are at least one, with their files.  Raises ``ReportError`` if two have the same test, unless it is a
    fixture that tests of both share and that both judged alike.
    """
    tests: dict[str, tuple[Path, TestEvidence]] = {}
    for path, document in documents:
        for test in document.report.tests:
            before, known = tests.setdefault(test.node_id, (path, test))
            if before is not path and [one.verdict for one in known.judgements] != [
                one.verdict for one in test.judgements
            ]:
                raise ReportError(
                    f"{before} and {path} judge {test.node_id} differently: give reports of jobs that divided the tests"
                )
    (_, first), reports = documents[0], [document.report for _, document in documents]
    if len(reports) == 1:
        return first
    return document_of(
        [test for _, test in tests.values()], date=max(one.date for one in reports), plugin=first.report.plugin,
        task=f"{len(reports)} jobs: {first.report.task}", exit_status=max(one.exit_status for one in reports),
        problems=dict.fromkeys(line for one in reports for line in one.problems),
        warnings=dict.fromkeys(line for one in reports for line in one.warnings),
        machines=dict.fromkeys(line for one in reports for line in one.machines),
        commit=Commit(first.report.commit, first.report.dirty), branch=first.report.branch,
        code=[code for one in reports for code in one.code],
    )  # fmt: skip


def read_report(path: Path) -> Document:
    """The run that ``--gpuperf-report=FILE.json`` wrote of.  Raises ``ReportError``."""
    remedy = "write it anew with pytest --gpuperf --gpuperf-report=FILE.json"
    try:
        content = path.read_bytes()
        schema = schema_of(content)
        if schema != SCHEMA:
            raise ReportError(f"{path} has schema {schema}, this version reads {SCHEMA}: {remedy}")
        return document_from(msgspec.json.decode(content, type=RunReport))
    except OSError as problem:
        raise ReportError(f"{path} cannot be read ({problem}): {remedy}") from problem
    except (msgspec.DecodeError, ValueError, OverflowError) as problem:  # or of figures that no run can have
        raise ReportError(f"{path} is no report of a run ({problem}): {remedy}") from problem


def of_last_run(start: Path) -> Document:
    """The last run in a folder or above.  Raises ``ReportError`` or ``LastRunError``."""
    path = last_run.find(start)
    if path is None:
        raise ReportError(
            f"there is no last run in {last_run.where(start)}: run pytest --gpuperf first, or name a report"
        )
    found = last_run.read(path)
    return document_of(
        found.tests, date=found.date, plugin=found.plugin, task="the last run", exit_status=0, problems=(),
        warnings=("of the last run, which keeps no exit status and no remarks",), machines=(),
    )  # fmt: skip
