"""Does the exercises of the lessons: makes each change in a copy of the suite, runs the command, looks for the words.

    python example_suite/exercises.py                # of all families
    python example_suite/exercises.py transpose32    # of some

Needs no GPU, and is for machines without one: with a GPU the commands take measurements and say more.  Ends with status
1 if an exercise does not show what its page says.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lessons import Exercise, families, lesson_of
from recorded import BASELINES, SUITE

ROOT = SUITE.parent
_FAILED = re.compile(r"\b\d+ failed\b")


class BadExercise(ValueError):
    """The text to be replaced is not there, or more than once."""


def changed(exercise: Exercise, suite: Path = SUITE) -> str:
    """The exercise's file with its change.  Raises ``BadExercise``."""
    text = (suite / exercise.file).read_text(encoding="utf-8")
    times = text.count(exercise.replace)
    if times != 1:
        raise BadExercise(f"{exercise.file} has {exercise.replace!r} {times} times, and an exercise needs it once")
    return text.replace(exercise.replace, exercise.by)


def run(exercise: Exercise, command: Sequence[str]) -> str:
    """What the command prints in a copy of the suite that has the change; white space as single spaces."""
    with tempfile.TemporaryDirectory(prefix="exercise-") as folder:
        copy = Path(folder, SUITE.name)
        shutil.copytree(SUITE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        (copy / exercise.file).write_text(changed(exercise), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "CI": ""}
        done = subprocess.run(
            [sys.executable, "-m", *command, f"--gpuperf-baselines={BASELINES}", "-p", "no:cacheprovider"],
            cwd=folder, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        return " ".join(f"{done.stdout} {done.stderr}".split())


def not_seen(family: str) -> list[str]:
    """What the exercise of a family promises and does not show: words, and whether a test fails."""
    exercise = lesson_of(family).exercise
    shown = run(exercise, exercise.command(family))
    missing = [words for words in exercise.see if words not in shown]
    if exercise.fails != bool(_FAILED.search(shown)):
        missing.append("a failed test" if exercise.fails else "a run without a failed test")
    return missing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Do the exercises of the lessons, and see whether they show it.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    chosen = parser.parse_args(arguments).families or families()
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for family, missing in zip(chosen, workers.map(not_seen, chosen), strict=True):
            wrong += bool(missing)
            print(f"{family}: {'not seen: ' + '; '.join(missing) if missing else 'as it says'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
