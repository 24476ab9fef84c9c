"""The layout keeps its rules: names are one module's, the root has five, a folder one duty, few imports wait."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_gpuperf"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted(path.parent for path in MODULES if path.name == "__init__.py")


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def shared(named: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """Names that more than one place has, with the modules where."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in named:
        found[name].append(relative(path))
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_classes_have_one_name() -> None:
    trees = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in MODULES]
    classes = [(node.name, path) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert len(classes) > 100
    assert shared(classes) == {}


def test_the_package_root_holds_few_modules() -> None:
    root = {path.stem for path in MODULES if path.parent == PACKAGE}
    front = {"__init__", "plugin", "benchmark", "hookspecs", "options", "read_options", "arguments"}
    shared = {"run", "results", "stash", "test_record", "update", "explain"}
    assert root == front | shared | {"atomic_write", "errors", "formatting", "garbage"}


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_the_first_line_of_a_folder_says_its_duty(folder: Path) -> None:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    first = docstring.partition("\n")[0]
    assert len(first.split()) >= 4
    assert first.endswith(".")


MOST_DEFERRED = 40
"""Imports in a function, of what a plain run does without, or of what may not be installed."""


def test_few_imports_are_deferred_and_each_says_why() -> None:
    lines = [(relative(path), line) for path in MODULES for line in path.read_text(encoding="utf-8").splitlines()]
    deferred = [(place, line) for place, line in lines if re.search(r"noqa\b.*PLC0415", line)]
    assert [one for one in deferred if not re.search(r"# noqa: PLC0415 \w+ \w+", one[1])] == []
    assert 0 < len(deferred) <= MOST_DEFERRED
