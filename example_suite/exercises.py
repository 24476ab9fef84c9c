"""Does the exercises of the textbook: all changes in one copy of the suite, one run, and the words of each page.

    python example_suite/exercises.py                # of all families
    python example_suite/exercises.py transpose32    # of some

An exercise of ``lesson_data/FAMILY.json``: in ``file``, ``replace`` is there once and becomes ``by``.  Then the gate
shows all of ``see``, and a test fails, unless ``fails`` is false.  Uses no GPU.  Ends with status 1 if not all do so.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from pytest_gpuperf.report.document import read_report, rows_of

SUITE = Path(__file__).parent
ROOT = SUITE.parent
sys.path.append(str(ROOT / "tests"))
import warm_nvdisasm  # noqa: E402

LESSONS = SUITE / "lesson_data"


class BadExercise(ValueError):
    """The text to be replaced is not there, or more than once."""


class Shown(NamedTuple):
    """What a run shows of a family."""

    words: str
    """Failures of the gate and likely causes, white space as single spaces."""
    failed: bool


def exercise_of(family: str) -> dict[str, Any]:
    return dict(json.loads((LESSONS / f"{family}.json").read_text(encoding="utf-8"))["exercise"])


def changed(exercise: Mapping[str, Any]) -> str:
    """The exercise's file with its change.  Raises ``BadExercise``."""
    text = (SUITE / exercise["file"]).read_text(encoding="utf-8")
    if (times := text.count(exercise["replace"])) != 1:
        raise BadExercise(f"{exercise['file']} has {exercise['replace']!r} {times} times, not once")
    return text.replace(exercise["replace"], exercise["by"])


def run(exercises: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Shown]:
    """What one run of the changed families shows of each."""
    with tempfile.TemporaryDirectory(prefix="exercises-") as folder:
        suite = Path(folder, SUITE.name)
        shutil.copytree(SUITE, suite, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        Path(folder, "conftest.py").write_text("import warm_nvdisasm\n\nwarm_nvdisasm.use()\n", encoding="utf-8")
        for exercise in exercises.values():
            (suite / exercise["file"]).write_text(changed(exercise), encoding="utf-8")
        command = [
            sys.executable, "-m", "pytest", "--gpuperf", "--gpuperf-arch=sm_90", "-n2", "--dist=worksteal", "--tb=no",
            f"--gpuperf-baselines={ROOT / 'baselines'}", "--gpuperf-report=report.json", "--junit-xml=junit.xml",
            "-p", "no:cacheprovider", *(f"{SUITE.name}/test_{family}.py" for family in exercises),
        ]  # fmt: skip
        own = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "CI": "", "CUDA_VISIBLE_DEVICES": ""}
        with warm_nvdisasm.servers() as variables:  # each start of nvdisasm takes a quarter of a second
            environment = {**os.environ, **own, **variables}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        words = collections.defaultdict(str)
        for row in rows_of(read_report(Path(folder, "report.json")).tests):
            words[_family(row.evidence.key.module)] += " ".join(" ".join(row.lines).split()) + "\n"
        cases = ElementTree.parse(Path(folder, "junit.xml")).findall(".//failure/..")
        failed = {_family(case.get("classname", "")) for case in cases}
    return {family: Shown(words[family], family in failed) for family in exercises}


def _family(module: str) -> str:
    return module.removesuffix(".py").rpartition("test_")[2]


def missing(exercise: Mapping[str, Any], shown: Shown) -> list[str]:
    """What an exercise promises and does not show: words, and whether a test fails."""
    fails = exercise.get("fails", True)
    absent = [words for words in exercise["see"] if words not in shown.words]
    if fails != shown.failed:
        absent.append("a failed test" if fails else "a run without a failed test")
    return absent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Do the exercises of the textbook, and see whether they show it.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    chosen = parser.parse_args(arguments).families or sorted(path.stem for path in LESSONS.glob("*.json"))
    exercises = {family: exercise_of(family) for family in chosen}
    wrong = 0
    for family, shown in run(exercises).items():
        if absent := missing(exercises[family], shown):
            wrong += 1
            print(f"{family}: not seen: {'; '.join(absent)}")
    red = sum(exercise.get("fails", True) for exercise in exercises.values())
    print(f"{len(exercises) - wrong} of {len(exercises)} exercises are as their pages say; {red} fail by the gate")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
