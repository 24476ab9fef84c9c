"""What a user can write or meet is in docs/reference exactly once: the code's own lists against the pages' tables."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pytest_gpuperf import cli
from pytest_gpuperf.options import FLAGS
from pytest_gpuperf.session import end_of_run

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
MOST_FLAGS = 22
OWN = "gpuperf"
"""In the name of each pytest option and setting of the plugin's."""


def section(page: str, title: str) -> str:
    """A section of a page of the reference, without those below it."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    return str(found)


def column(text: str, number: int = 0) -> list[str]:
    """The cells of a column of a section's table, below its head."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [row[number].strip().replace("\\|", "|") for row in rows[2:]]


def names(cells: list[str]) -> list[str]:
    """What cells name, without the values that it takes."""
    return sorted(re.sub(r"\[?=.*|`", "", cell) for cell in cells if cell)


def test_every_option_that_pytest_knows_of_the_plugin_is_listed_once(pytester: pytest.Pytester) -> None:
    helped = pytester.runpytest_inprocess("--help").stdout.str()
    shown = {name for name in re.findall(r"(?<![\w-])--[a-z-]+", helped) if OWN in name or name == "--update-baselines"}
    listed = names(column(section("options.md", "Flags and ini settings")))
    assert listed == sorted(flag.name for flag in FLAGS.values() if flag.help != argparse.SUPPRESS)
    assert sorted(shown) == listed
    assert len(listed) <= MOST_FLAGS


def test_every_option_is_named_by_a_task() -> None:
    tasks = "".join(page.read_text(encoding="utf-8") for page in (REFERENCE.parent / "how-to").glob("*.md"))
    assert [
        flag.name
        for flag in FLAGS.values()
        if flag.help != argparse.SUPPRESS and not re.search(rf"{flag.name}\b(?!-)", tasks)
    ] == []


def test_every_fixture_is_listed_once(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_inprocess("--fixtures", "-q", "-p", "no:cacheprovider").stdout.str()
    of_plugin = re.findall(r"^(\w+)(?: \[\w+ scope\])? -- .*pytest_gpuperf.*fixtures\.py", shown, re.MULTILINE)
    assert len(of_plugin) >= 3
    assert names(column(section("api.md", "What the fixtures are"))) == sorted(of_plugin)


def test_every_exit_status_of_a_run_is_listed_once() -> None:
    statuses = {value for name, value in vars(end_of_run).items() if name.startswith("EXIT_")}
    listed = column(section("verdicts.md", "Exit statuses of pytest"))
    assert sorted(listed) == sorted(map(str, statuses))


def test_every_exit_status_of_the_command_is_listed_once() -> None:
    statuses = {0, 1, 2}  # 2 is argparse's own
    for module in pkgutil.iter_modules(cli.__path__):
        members = vars(importlib.import_module(f"{cli.__name__}.{module.name}"))
        statuses |= {value for name, value in members.items() if name.startswith("EXIT_")}
    listed = Counter(map(int, re.findall(r"\b\d+\b", section("verdicts.md", "Exit statuses of gpuperf"))))
    assert listed == Counter(statuses)


def test_the_committed_pages_are_what_the_sources_make() -> None:
    """``python docs/generator`` writes them anew: commands with their arguments, and the API, are listed by that."""
    generator = REFERENCE.parent / "generator"
    command = [sys.executable, str(generator), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = (generator / "__main__.py").read_text(encoding="utf-8")
    assert [page.name for page in REFERENCE.iterdir() if f'"{page.name}"' not in pages] == []
