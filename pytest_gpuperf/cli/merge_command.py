"""``gpuperf merge``: the reports of all shards of a run become one report and one exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_gpuperf.cli.report_command import ReportError, read_report
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.report.files import NotWritten, write_report
from pytest_gpuperf.session.merge_runs import MergeRefused, merge

PROBLEMS = (MergeRefused, ReportError, NotWritten)


class WrongEnding(NotWritten):
    """A file whose ending says another form than its flag."""


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.reports, {".html": parsed.html, ".md": parsed.markdown, ".json": parsed.json}, write=write)


def run(reports: Sequence[Path], files: Mapping[str, Path | None], *, write: Callable[[str], object]) -> int:
    """Merge and print what was found; ``files`` are what to write, by their endings.

    Returns the exit status that one run of all tests would have had.  Raises one of ``PROBLEMS``.
    """
    wanted = [(ending, file) for ending, file in files.items() if file is not None]
    for ending, file in wanted:
        if file.suffix != ending:
            raise WrongEnding(f"{file} does not end in {ending}, the form that its flag asks for: name another file")
    merged = merge([(str(path), read_report(path).report) for path in reports])
    document, report = merged.document, merged.document.report
    for node, why in sorted(merged.failures.items()):
        write(f"FAILED {node} - {why}\n")
    for problem in report.problems:
        write(f"ERROR: {problem}\n")
    for warning in report.warnings:
        write(f"{warning}\n")
    for _, file in wanted:
        write(f"report written to {write_report(document, str(file))}\n")
    tests = f"{numbered(len(merged.failures), 'test')} failed: " if merged.failures else ""
    write(f"{numbered(len(reports), 'shard')}: {tests}{document.title} (exit status {report.exit_status})\n")
    return report.exit_status
