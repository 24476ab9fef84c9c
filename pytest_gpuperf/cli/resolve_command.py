"""``gpuperf resolve``: merges baselines that are in conflict, and says how to record what both sides changed."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.resolve import ResolvedFile, resolve
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.options import USUAL_FOLDER
from pytest_gpuperf.process import last_run

RECORD = "pytest --gpuperf --update-baselines=all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(given=parsed.baselines, start=Path.cwd(), write=write)


def run(*, given: Path | None, start: Path, write: Callable[[str], object]) -> int:
    """Merge what is unmerged and say what to record anew.  Returns the exit status.

    1 if a file is left that is no evidence, else 0.  Raises ``GpuperfError``.
    """
    folder = folder_of(given, start)
    outcomes = resolve(folder, lambda line: write(f"{line}\n"))
    if not outcomes:
        write(f"Nothing is in conflict in {folder}.\n")
        return 0
    for outcome in outcomes:
        _show(outcome, write)
    root = _root(folder.absolute(), start)
    enter = "" if root == start else f"cd {shlex.quote(str(root))} && "
    _tell_what_to_record({key for one in outcomes if one.merged for key in one.merged.changed_by_both}, enter, write)
    left = [one for one in outcomes if not one.written and not one.already]
    write(f"Nothing was staged: git add {shlex.quote(str(folder))}\n")
    return 1 if left else 0


def _root(folder: Path, start: Path) -> Path:
    """Where node ids of these baselines begin: where the last run did, else beside a folder of the usual name."""
    path = last_run.find(start)
    with contextlib.suppress(last_run.LastRunError):
        if path is not None and last_run.baselines_of(path, last_run.read(path)) == folder:
            return last_run.root_of(path)
    return folder.parent if folder.name == USUAL_FOLDER else start


def _tell_what_to_record(again: Collection[Key], enter: str, write: Callable[[str], object]) -> None:
    """The command that records these anew; pytest can be given no fixture, only a test that asks for it.

    ``enter`` goes to the folder that the node ids begin in.
    """
    tests = sorted({key.node_id for key in again if not fixture_of(key.test)})
    fixtures = sorted({key.node_id for key in again if fixture_of(key.test)})
    if again:
        write(
            "Neither side has evidence of the merged code for what both changed: ours is kept. Resolve the code, then "
            "record it anew:\n"
        )
    if tests:
        write(f"  {enter}{RECORD} {shlex.join(tests)}\n")
    if fixtures:
        write(f"  {enter}{RECORD} FILE::TEST, with a test for each that asks for it: {', '.join(fixtures)}\n")


def _show(outcome: ResolvedFile, write: Callable[[str], object]) -> None:
    path = quoted(str(outcome.path), 200)
    if outcome.already:
        write(f"kept     {path}: resolved already: git add it\n")
        return
    if not outcome.written:
        write(f"left     {path}: no evidence of a target; resolve it by hand\n")
        return
    write(f"merged   {path}\n")
    for words, keys in _named(outcome):
        for key in keys:
            write(f"{words}  {key}\n")


def _named(outcome: ResolvedFile) -> Sequence[tuple[str, Sequence[object]]]:
    merged = outcome.merged
    if merged is None:
        return ()
    return (("  both changed, ours kept:", merged.changed_by_both),
            ("  one removed, the other changed, as ours:", merged.removed_by_one))  # fmt: skip
