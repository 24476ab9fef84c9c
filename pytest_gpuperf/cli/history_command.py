"""``gpuperf history``: times, registers and instructions of workloads over the commits of their baselines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import GitFolder, run_git
from pytest_gpuperf.baselines.store import Baselines
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of, seen_from_root
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.report.history import Point, Series, figures_of, lines_of

_FIELDS = "%H%x1f%cI%x1f%s%x1e"


class PastCommit(NamedTuple):
    """A commit that touched the baselines."""

    name: str
    date: str
    """ISO 8601, with its time zone."""
    subject: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node_id", metavar="NODEID", nargs="?", default="", help="test, file or folder (default: all)")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Print what changed over the commits and where it took a step; returns the exit status, 0.

    Raises ``GpuperfError``.
    """
    node_id, folder = parsed.node_id, folder_of(parsed.baselines, Path.cwd())
    found = series_of(GitFolder(folder), commits_of(folder))
    name = seen_from_root(node_id.rstrip("/"), folder.parent)
    series = [one for one in found if not name or one.key.is_of(name)]
    if not series:
        what = f"of {node_id}" if node_id else f"in the commits of {folder}"
        raise GpuperfError(f"there is nothing on record {what}: commit baselines, or name a test as pytest does")
    write("\n".join(lines_of(series)) + "\n")
    return 0


def commits_of(path: Path) -> list[PastCommit]:
    """Commits that touched a folder, along first parents, the oldest first."""
    listed = run_git(path, "log", "--first-parent", "--reverse", f"--format={_FIELDS}", "--", ".")
    lines = listed.stdout.decode("utf-8", "replace").split("\x1e")
    fields = (line.strip("\n").split("\x1f") for line in lines if line.strip("\n"))
    return [PastCommit(name, date, subject) for name, date, subject in fields]


def series_of(folder: GitFolder, commits: Iterable[PastCommit]) -> list[Series]:
    """Figures on record at these commits, by workload, target (``sm_90, nvrtc 13.0.88``, ``nvidia-h200``) and measure.

    A record that a commit left as it was is no second measurement: it is one point, at the commit that brought it.  A
    commit whose baselines cannot be read is left out.
    """
    points: dict[tuple[Key, str, str], list[Point]] = {}
    last: dict[tuple[Key, str], TimeRecord | StaticRecord] = {}
    for commit in commits:
        try:
            workloads = Baselines(folder.files(commit.name), commit.name).workloads()
        except BaselineError:
            continue
        for key, records in workloads.items():
            static = {f"{arch}, {toolchain}": record for (arch, toolchain), record in records.static.items()}
            every: dict[str, TimeRecord | StaticRecord] = {**static, **records.times}
            for target, record in every.items():
                if last.get((key, target)) != record:
                    last[key, target] = record
                    for measure, value in figures_of(record).items():
                        points.setdefault((key, target, measure), []).append(Point(*commit, value))
    return [Series(*name, tuple(those)) for name, those in sorted(points.items())]
