"""``gpuperf report``: a page, Markdown or JSON of a run, made later from what it left; of several runs, as one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.context import last_run
from pytest_gpuperf.context.repository import Commit
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.base_record import schema_of
from pytest_gpuperf.options import REPORT_ENDINGS
from pytest_gpuperf.report.document import SCHEMA, Document, RunReport, document_from, document_of
from pytest_gpuperf.report.files import write_report
from pytest_gpuperf.report.markdown import as_markdown


class ReportError(GpuperfError):
    """There is no run to report on, or no such form; the message says what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reports", metavar="JSON", nargs="*", type=Path,
        help="what --gpuperf-report=FILE.json wrote; of several jobs, one each (default: the last run here)",
    )  # fmt: skip
    add_output(parser, f"a file that ends in {', '.join(REPORT_ENDINGS)}; may be given again (default: Markdown)")


def add_output(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--output", dest="files", metavar="FILE", type=Path, action="append", default=[], help=words)


def refuse_other_endings(files: Iterable[Path], endings: Sequence[str]) -> None:
    """Raise ``GpuperfError`` for a file whose ending names no form."""
    for file in files:
        if not file.name.endswith(tuple(endings)):
            raise GpuperfError(f"{file} has none of the endings {', '.join(endings)}, by which it has its form")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Write every file in the form of its ending; without any, Markdown.  Returns 0.  Raises ``GpuperfError``."""
    refuse_other_endings(parsed.files, REPORT_ENDINGS)
    document = joined([read_report(path) for path in parsed.reports]) if parsed.reports else _of_last_run(Path.cwd())
    if not parsed.files:
        write(as_markdown(document))
    for file in parsed.files:
        write(f"report written to {write_report(document, str(file))}\n")
    return 0


def read_report(path: Path) -> RunReport:
    """The run that ``--gpuperf-report=FILE.json`` wrote of.  Raises ``ReportError``."""
    remedy = "write it anew with pytest --gpuperf --gpuperf-report=FILE.json"
    try:
        content = path.read_bytes()
        schema = schema_of(content)
        if schema != SCHEMA:
            raise ReportError(f"{path} has schema {schema}, this version reads {SCHEMA}: {remedy}")
        report = msgspec.json.decode(content, type=RunReport)
        document_from(report)
        return report
    except OSError as problem:
        raise ReportError(f"{path} cannot be read ({problem}): {remedy}") from problem
    except (msgspec.DecodeError, ValueError, OverflowError) as problem:  # or of figures that no run can have
        raise ReportError(f"{path} is no report of a run ({problem}): {remedy}") from problem


def joined(reports: Sequence[RunReport]) -> Document:
    """One run of several that each had a part of the tests; a test of several is that of the last.

    Raises ``ReportError`` if they are of several commits.
    """
    first, *others = reports
    if not others:
        return document_from(first)
    if any(one.commit != first.commit for one in others):
        commits = ", ".join(dict.fromkeys(one.commit[:12] or "none" for one in reports))
        raise ReportError(f"the reports are of several commits ({commits}): name those of one run")
    tests = {test.node_id: test for one in reports for test in one.tests}
    whole = document_of(
        tuple(tests.values()), date=max(one.date for one in reports), plugin=first.plugin, task=first.task,
        exit_status=next((one.exit_status for one in reports if one.exit_status), 0),
        problems=_once(one.problems for one in reports), warnings=(),
        machines=_once(one.machines for one in reports), code=[code for one in reports for code in one.code],
        commit=Commit(first.commit, dirty=any(one.dirty for one in reports)), branch=first.branch,
    )  # fmt: skip
    warnings = _once([*(one.warnings for one in reports), whole.report.warnings])
    return document_from(msgspec.structs.replace(whole.report, warnings=warnings))


def _once(lines: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for some in lines for line in some))


def _of_last_run(start: Path) -> Document:
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
