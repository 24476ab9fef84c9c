"""``gpuperf report``: a page, Markdown or JSON of a run, made later from what it left; of several runs, as one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.options import REPORT_ENDINGS
from pytest_gpuperf.report.document import Document, RunReport, document_of, read_report
from pytest_gpuperf.report.files import write_report
from pytest_gpuperf.report.markdown import as_markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reports", metavar="JSON", nargs="+", type=Path,
        help="what --gpuperf-report=FILE.json wrote; of several jobs, one each",
    )  # fmt: skip
    parser.add_argument(
        "--output", dest="files", metavar="FILE", type=Path, action="append", default=[],
        help=f"a file that ends in {', '.join(REPORT_ENDINGS)}; may be given again (default: Markdown)",
    )  # fmt: skip


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Write every file in the form of its ending; without any, Markdown.  Returns 0.  Raises ``GpuperfError``."""
    for file in parsed.files:
        if not file.name.endswith(tuple(REPORT_ENDINGS)):
            raise GpuperfError(f"{file} has none of the endings {', '.join(REPORT_ENDINGS)}, which set the format")
    document = joined([(path, read_report(path)) for path in parsed.reports])
    if not parsed.files:
        write(as_markdown(document))
    for file in parsed.files:
        write(f"report written to {write_report(document, str(file))}\n")
    return 0


def joined(reports: Sequence[tuple[Path, RunReport]]) -> Document:
    """One run of jobs that divided its tests: all their workloads, and the worst of their exit statuses.

    ``reports`` are at least one, with their files.  Raises ``GpuperfError`` if they are of several commits, or if two
    have the same test, unless it is a fixture that tests of both share and that both judged alike.
    """
    (file, first), found = reports[0], [report for _, report in reports]
    if len(found) == 1:
        return document_of(first)
    tests: dict[str, tuple[Path, TestEvidence]] = {}
    for path, report in reports:
        if report.commit != first.commit:
            raise GpuperfError(f"{file} and {path} are of different commits: pass the reports of the jobs of one run")
        for test in report.tests:
            before, known = tests.setdefault(test.node_id, (path, test))
            if [one.verdict for one in known.judgements] != [one.verdict for one in test.judgements]:
                raise GpuperfError(
                    f"{before} and {path} judge {test.node_id} differently: pass reports of jobs that share the tests"
                )
    return document_of(msgspec.structs.replace(
        first, tests=tuple(test for _, test in tests.values()), date=max(one.date for one in found),
        task=f"{len(found)} jobs: {first.task}", exit_status=max(one.exit_status for one in found),
        problems=_once(one.problems for one in found), warnings=_once(one.warnings for one in found),
        machines=_once(one.machines for one in found),
    ))  # fmt: skip


def _once(lines: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for some in lines for line in some))
