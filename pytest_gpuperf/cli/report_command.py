"""``gpuperf report``: a run's page, Markdown or JSON, made later from what it left."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.model.base_record import schema_of
from pytest_gpuperf.process import last_run
from pytest_gpuperf.report.document import SCHEMA, Document, RunReport, document_from, document_of
from pytest_gpuperf.report.files import NotWritten, write_report
from pytest_gpuperf.report.markdown import as_markdown

ENDINGS = (".html", ".md", ".json")


class ReportError(Exception):
    """There is no run to report on, or no such form; the message says what to do."""


PROBLEMS = (ReportError, NotWritten, last_run.LastRunError)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.report, parsed.files, start=Path.cwd(), write=write)


def run(report: Path | None, files: Sequence[Path], *, start: Path, write: Callable[[str], object]) -> int:
    """Write every one of ``files`` in the form of its ending; without any, Markdown to ``write``.

    Returns the exit status, 0.  Raises one of ``PROBLEMS``.
    """
    for file in files:
        if file.suffix not in ENDINGS:
            raise ReportError(f"{file} has none of the endings {', '.join(ENDINGS)}, by which a report has its form")
    document = read_report(report) if report is not None else of_last_run(start)
    if not files:
        write(as_markdown(document))
    for file in files:
        write(f"report written to {write_report(document, str(file))}\n")
    return 0


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
