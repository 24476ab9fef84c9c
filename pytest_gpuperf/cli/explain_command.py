"""``gpuperf explain``: what holds a workload back, and why it changed, from the last run."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import seen_from_root
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.explain.explanation import explain_all
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.process import last_run
from pytest_gpuperf.report.document import read_report

CLOSE_MATCHES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "a file, class or test, as pytest names it or by its path; or 'NODEID [workload]'"
    parser.add_argument("node_id", metavar="NODEID", help=words)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Explain workloads of the last run; returns the exit status, 0.  Raises ``GpuperfError``."""
    start = Path.cwd()
    path = last_run.find(start)
    if path is None:
        raise GpuperfError(
            f"no run has left its evidence in {start} or above in its repository ({last_run.FOLDER}/{last_run.FILE}): "
            "run pytest --gpuperf first"
        )
    root = last_run.root_of(path)
    run, name = read_report(path, "run pytest --gpuperf again"), seen_from_root(parsed.node_id, root)
    found = [(test, work) for test in run.tests for work in test.workloads if work.key.is_of(name)]
    if not found:
        raise _unmatched(name, [work.key for test in run.tests for work in test.workloads])
    write(f"last run: {run.date}, gpuperf {run.plugin}, {path}\n")
    lines = explain_all(BaselineStore(root / run.baselines), found, CompileCache())
    write("\n" + "\n".join(lines))
    return 0


def _unmatched(name: str, keys: Iterable[Key]) -> GpuperfError:
    """The error for no match, with the nearest names."""
    names = list(map(str, keys))
    close = difflib.get_close_matches(name, names, n=CLOSE_MATCHES, cutoff=0.4)
    hint = f"close to it: {', '.join(close)}" if close else f"it has {first_of(names, CLOSE_MATCHES) or 'no workload'}"
    return GpuperfError(f"{name} is not in the last run; {hint}")
