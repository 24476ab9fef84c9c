"""The names that ``pytest_gpuperf`` exports: each resolves, costs nothing before, is typed and is documented."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_gpuperf

ROOT = Path(__file__).parents[3]
WRITTEN_BY_A_USER = ROOT / "tests" / "typing" / "written_by_a_user.py"


def imports(nodes: list[ast.stmt]) -> dict[str, set[str]]:
    """Names by the module that statements import them from."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    return found


def test_every_export_is_in_the_file_that_mypy_reads_as_a_user_would() -> None:
    tree = ast.parse(WRITTEN_BY_A_USER.read_text(encoding="utf-8"))
    imported = imports(tree.body)["pytest_gpuperf"]
    assert imported == set(pytest_gpuperf.__all__)
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert sorted(imported - set(used)) == []


def test_exports_come_from_the_homes_that_the_package_names() -> None:
    for name in set(pytest_gpuperf.__all__) - {"__version__"}:
        home = importlib.import_module(f"pytest_gpuperf.{pytest_gpuperf._HOME_OF[name]}")
        assert getattr(pytest_gpuperf, name) is getattr(home, name)
        assert getattr(pytest_gpuperf, name).__module__ in (home.__name__, "builtins")  # so that messages have no path


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
