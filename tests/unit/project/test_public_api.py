"""The names that ``pytest_gpuperf`` exports: each resolves, costs nothing before, is typed and is documented."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_gpuperf

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "pytest_gpuperf" / "__init__.py"
WRITTEN_BY_A_USER = ROOT / "tests" / "typing" / "written_by_a_user.py"
REFERENCE = ROOT / "docs" / "reference" / "api.md"


def imports(nodes: list[ast.stmt]) -> dict[str, set[str]]:
    """Names by the module that statements import them from."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    return found


def blocks() -> dict[str, list[ast.stmt]]:
    """Bodies of the package's ``if`` statements, by condition."""
    tree = ast.parse(PACKAGE.read_text(encoding="utf-8"))
    return {ast.unparse(node.test): node.body for node in tree.body if isinstance(node, ast.If)}


def test_every_export_is_in_the_file_that_mypy_reads_as_a_user_would() -> None:
    tree = ast.parse(WRITTEN_BY_A_USER.read_text(encoding="utf-8"))
    imported = imports(tree.body)["pytest_gpuperf"]
    assert imported == set(pytest_gpuperf.__all__)
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert sorted(imported - set(used)) == []


def test_every_export_has_a_section_in_the_reference() -> None:
    sections = re.findall(r"^### `(\w+)`$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(pytest_gpuperf.__all__)


def test_exports_come_from_the_homes_that_the_package_names() -> None:
    for name in set(pytest_gpuperf.__all__) - {"__version__"}:
        home = importlib.import_module(f"pytest_gpuperf.{pytest_gpuperf._HOME_OF[name]}")
        assert getattr(pytest_gpuperf, name) is getattr(home, name)
        assert getattr(pytest_gpuperf, name).__module__ in (home.__name__, "builtins")  # so that messages have no path


def test_type_checkers_see_the_exports_that_there_are_and_no_others() -> None:
    typed = imports(blocks()["TYPE_CHECKING"])
    homes = {f"pytest_gpuperf.{home}": set(names) for home, names in pytest_gpuperf._HOMES.items()}
    assert typed == homes
    assert set().union(*homes.values()) | {"__version__"} == set(pytest_gpuperf.__all__)
    hidden = [node.name for node in blocks()["not TYPE_CHECKING"] if isinstance(node, ast.FunctionDef)]
    assert hidden == ["__getattr__"]


def test_the_package_imports_nothing_of_its_own_but_the_version() -> None:
    code = (
        "import sys, pytest_gpuperf; print(*sorted(name for name in sys.modules if name.startswith('pytest_gpuperf')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["pytest_gpuperf", "pytest_gpuperf.model"]


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        _ = pytest_gpuperf.NoSuchName  # type: ignore[attr-defined]
    assert set(pytest_gpuperf.__all__) <= set(dir(pytest_gpuperf))
