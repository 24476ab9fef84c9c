"""``gpuperf history``: times, registers and instructions of workloads over the commits of their baselines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.history import PastCommit, PastRecord, commits_of, records_of
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.cli.explain_command import WantedWorkloads
from pytest_gpuperf.cli.report_command import ReportError, read_report
from pytest_gpuperf.model.evidence import Key, StaticRecord, TimeRecord
from pytest_gpuperf.report.document import RunReport
from pytest_gpuperf.report.files import NotWritten, write_file
from pytest_gpuperf.report.history import Point, Series, as_action_benchmark, as_bencher, as_csv, figures_of, lines_of

ENDINGS = (".html", ".csv", ".bmf.json", ".gab.json")


class HistoryError(Exception):
    """There is no such history, or no such form; the message says what to do."""


PROBLEMS = (BaselineError, NoFolderError, ReportError, HistoryError, NotWritten, OSError)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(
        parsed.node_id, given=parsed.baselines, start=Path.cwd(), files=parsed.output, reports=parsed.report,
        write=write,
    )  # fmt: skip


def run(
    node_id: str, *, given: Path | None, start: Path, files: Sequence[Path], reports: Sequence[Path],
    write: Callable[[str], object],
) -> int:  # fmt: skip
    """Print what changed over the commits and where it took a step, and write ``files`` by their endings.

    Returns the exit status, 0.  Raises one of ``PROBLEMS``.
    """
    for file in files:
        if not file.name.endswith(ENDINGS):
            raise HistoryError(f"{file} has none of the endings {', '.join(ENDINGS)}, by which a history has its form")
    folder = folder_of(given, start)
    documents = [read_report(path).report for path in reports]
    commits = commits_of(folder)
    git = GitFolder(folder)
    past = list(records_of(git, commits))
    wanted = WantedWorkloads(node_id).seen_from(start, folder.parent)
    found = series_of([*past, *(one for document in documents for one in _reported(document))])
    series = [one for one in found if not node_id or wanted.includes(one.key) or _below(one.key, node_id)]
    if not series:
        what = f"of {node_id}" if node_id else f"in the commits of {folder}"
        raise HistoryError(f"there is nothing on record {what}: commit baselines, or name a test as pytest does")
    write("\n".join(lines_of(series)) + "\n")
    for file in files:
        write_file("history", file, _content(file, series))
        write(f"history written to {file}\n")
    return 0


def _below(key: Key, folder: str) -> bool:
    return key.module.startswith(folder.rstrip("/") + "/")


def series_of(records: Iterable[PastRecord]) -> list[Series]:
    """Figures of the records, in the order of their commits, by workload, target and measure.

    A record that a commit left as it was is no second measurement: it is one point, at the commit that brought it.
    """
    points: dict[tuple[Key, str, str], list[Point]] = {}
    last: dict[tuple[Key, str], TimeRecord | StaticRecord] = {}
    for commit, key, target, record in records:
        if last.get((key, target)) == record:
            continue
        last[key, target] = record
        for measure, value in figures_of(record).items():
            points.setdefault((key, target, measure), []).append(Point(*commit[:3], value, commit.is_run))
    return [Series(*name, tuple(those)) for name, those in sorted(points.items())]


def _reported(report: RunReport) -> Iterator[PastRecord]:
    """What a run found, as one more commit."""
    changes = ", with changes" if report.dirty else ""
    commit = PastCommit(report.commit or "a run", report.date, f"run of {report.date}{changes}", is_run=True)
    for test in report.tests:
        for work in test.workloads:
            for arch, static in work.static.items():
                yield PastRecord(commit, work.key, f"{arch}, {work.toolchain}", static)
            if work.time is not None and test.device is not None:
                yield PastRecord(commit, work.key, test.device.slug, work.time)


def _content(file: Path, series: Sequence[Series]) -> bytes:
    if file.name.endswith(".csv"):
        return as_csv(series).encode()
    if file.name.endswith(".bmf.json"):
        return as_bencher(series)
    if file.name.endswith(".gab.json"):
        return as_action_benchmark(series)
    from pytest_gpuperf.report.history_page import as_history_page  # noqa: PLC0415 Jinja is an extra

    return as_history_page(series).encode()
