"""``gpuperf history``: times, registers and instructions of workloads over the commits of their baselines."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import GitFolder, run_git
from pytest_gpuperf.baselines.store import Baselines
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of, seen_from_root
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import duration, numbered, percent
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.report.order import function_of, named

LEAST_STEP = 0.02
"""Of a time: records of unchanged code differ by about 1 %."""
_FIELDS = "%H%x1f%cI%x1f%s%x1e"


class PastCommit(NamedTuple):
    """A commit that touched the baselines."""

    name: str
    date: str
    """ISO 8601, with its time zone."""
    subject: str


class Figure(NamedTuple):
    """One figure of a workload."""

    key: Key
    target: str
    """``sm_90, nvrtc 13.0.88`` or ``nvidia-h200``"""
    measure: str
    """``time``, in nanoseconds, ``registers`` or ``instructions``."""


Points = tuple[tuple[PastCommit, float], ...]
"""A figure over the commits that recorded it anew."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node_id", metavar="NODEID", nargs="?", default="", help="test, file or folder (default: all)")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Print what changed over the commits and where it took a step; returns the exit status, 0.

    Raises ``GpuperfError``.
    """
    node_id, folder = parsed.node_id, folder_of(parsed.baselines, Path.cwd())
    found = series_of(GitFolder(folder), commits_of(folder))
    name = seen_from_root(node_id, folder.parent)
    series = {one: points for one, points in found.items() if not name or one.key.is_of(name)}
    if not series:
        what = f"of {node_id}" if node_id else f"in the commits of {folder}"
        raise GpuperfError(f"there is no baseline {what}: commit baselines, or name a test as pytest does")
    write("\n".join(_lines_of(series)) + "\n")
    return 0


def commits_of(path: Path) -> list[PastCommit]:
    """Commits that touched a folder, along first parents, the oldest first."""
    listed = run_git(path, "log", "--first-parent", "--reverse", f"--format={_FIELDS}", "--", ".")
    lines = listed.stdout.decode("utf-8", "replace").split("\x1e")
    fields = (line.strip("\n").split("\x1f") for line in lines if line.strip("\n"))
    return [PastCommit(name, date, subject) for name, date, subject in fields]


def series_of(folder: GitFolder, commits: Iterable[PastCommit]) -> dict[Figure, Points]:
    """Recorded figures at these commits, sorted.

    A record that a commit did not change is no second measurement: it is one point, at the commit that wrote it.  A
    commit whose baselines cannot be read is left out.
    """
    found: dict[Figure, Points] = {}
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
                    for measure, value in _figures_of(record).items():
                        figure = Figure(key, target, measure)
                        found[figure] = (*found.get(figure, ()), (commit, value))
    return dict(sorted(found.items()))


def _figures_of(record: TimeRecord | StaticRecord) -> dict[str, float]:
    if isinstance(record, TimeRecord):
        return {"time": mean_time_ns(record.rounds)}
    return {"registers": record.profile.registers, "instructions": record.profile.instructions}


def _lines_of(series: Mapping[Figure, Points]) -> list[str]:
    """Those that changed, with their steps, equal ones of a test function as one; then how many did not."""
    alike: dict[tuple[object, ...], list[Figure]] = {}
    for one, points in series.items():
        if len({value for _, value in points}) > 1:
            alike.setdefault((function_of(one.key), one.target, one.measure, points), []).append(one)
    lines = []
    for those in alike.values():
        (_, target, measure), points = those[0], series[those[0]]
        first, *_, last = (duration(value) if measure == "time" else f"{value:g}" for _, value in points)
        name = f"{named([one.key for one in those])} {measure} on {target}"
        lines.append(f"{name}: {first} -> {last}, {numbered(len(points), 'commit')}")
        least = LEAST_STEP if measure == "time" else 0.0
        for (_, old), (commit, new) in itertools.pairwise(points):
            if old and abs(new / old - 1) > least:
                step = f"{percent(new / old - 1)} at {commit.name[:12]} ({commit.date[:10]}, {commit.subject})"
                lines.append(f"    {step}")
    if unchanged := len(series) - sum(map(len, alike.values())):
        lines.append(f"{numbered(unchanged, 'figure')} did not change")
    return lines
