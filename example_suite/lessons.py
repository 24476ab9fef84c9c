"""What is written by hand for the textbook: a question and an exercise for each family, in ``lesson_data/FAMILY.json``.

question    what the family asks, in a sentence or two
pairs       optional: optimised workloads whose pairs are shown in detail; else the first pair of the family
kernels     optional: two kernels to compare in the source, where a family has no pairs
exercise    a change of one file (``replace``, which is there once, ``by``), words that the gate then prints without
            a GPU (``see``), the reason (``because``), and ``"fails": false`` if the run stays green without a GPU;
            ``exercises.py`` does it
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recorded import ARCH, SUITE

FOLDER = Path(__file__).with_name("lesson_data")
README = SUITE / "README.md"
_STATION = re.compile(
    r"^### (?P<section>.+)$"
    r"|^\*\*(?P<family>\w+)\*\* \[(?P<sources>[\w, ]+)\]: (?P<answer>.+(?:\n(?!<!--|\*|\n).+)*)",
    re.MULTILINE,
)


class NoLesson(LookupError):
    """A family has no lesson yet; the message says where it belongs."""


@dataclasses.dataclass(frozen=True)
class Exercise:
    """A change and what comes of it."""

    file: str
    """In the folder of the suite."""
    replace: str
    by: str
    see: Sequence[str]
    """Words of the output, white space as single spaces."""
    because: str
    fails: bool = True
    """Whether a test fails by it without a GPU; else the run says it and stays green."""

    def command(self, family: str) -> tuple[str, ...]:
        return ("pytest", "--gpuperf", f"--gpuperf-arch={ARCH}", f"{SUITE.name}/test_{family}.py")


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One file of ``lessons``."""

    question: str
    exercise: Exercise
    pairs: Sequence[str] = ()
    kernels: Sequence[str] = ()


class Station(NamedTuple):
    """Where the tour of the README comes to a family."""

    family: str
    section: str
    sources: tuple[str, ...]
    answer: str = ""
    """What the tour says of it, on one line."""


@functools.cache
def lesson_of(family: str) -> Lesson:
    """Raises ``NoLesson``, and ``TypeError`` for a file that is none."""
    file = FOLDER / f"{family}.json"
    if not file.exists():
        raise NoLesson(
            f"{family} has no lesson: write example_suite/lesson_data/{family}.json (see example_suite/lessons.py)"
        )
    given = json.loads(file.read_text(encoding="utf-8"))
    return Lesson(**{**given, "exercise": Exercise(**given["exercise"])})


def tour(readme: str) -> list[Station]:
    """The families of the README's tour, in its order."""
    stations, section = [], ""
    for found in _STATION.finditer(readme):
        section = found["section"] or section
        if found["family"]:
            answer = " ".join(found["answer"].split())
            stations.append(Station(found["family"], section, tuple(found["sources"].split(", ")), answer))
    return stations


def families() -> list[str]:
    """Every family that has kernels, in the tour's order; those that the tour leaves out last."""
    toured = [station.family for station in tour(README.read_text(encoding="utf-8"))]
    kernels = sorted(path.stem for path in (SUITE / "kernels").glob("*.cu"))
    return [name for name in toured if name in kernels] + [name for name in kernels if name not in toured]
