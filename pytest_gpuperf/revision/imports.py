"""The import path of another revision's process: it never imports from the working tree.

``enter`` runs before all imports of the tests: it replaces paths into the working tree by paths into the worktree.
``foreign_files`` names, afterwards, modules that were imported from elsewhere all the same.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

OWN = "pytest_gpuperf"
"""This plugin measures both sides, and is code of neither."""
_EDITABLE = "__editable__"
"""How the modules begin that setuptools puts in the place of a folder on the path."""
BOOTSTRAP = """\
import os, sys
root, others, tree, as_module = sys.argv[1:5]
del sys.argv[1:5]
getattr(sys.flags, "safe_path", 0) or sys.path.pop(0)
sys.path.insert(0, root)
from pytest_gpuperf.revision import imports
sys.modules["pytest_gpuperf"].__doc__ += " PYTEST_DONT_REWRITE"
sys.path[:1] = [os.getcwd()] if as_module else []
imports.enter(others.split(os.pathsep) if others else (), tree)
import pytest
sys.exit(pytest.main([*sys.argv[1:], *imports.load_plugin()]))
"""
"""Program of the process.  There follow ``bootstrap_arguments``, and pytest's arguments."""


def bootstrap_arguments(others: Iterable[Path], tree: Path, *, as_module: bool) -> tuple[str, ...]:
    """Where the plugin lies, working trees and the worktree that they are turned to, and how pytest is started.

    ``as_module`` is like ``python -m pytest``, which has the current folder on its path.
    """
    return str(Path(__file__).parents[2]), os.pathsep.join(map(str, others)), str(tree), "1" if as_module else ""


def enter(others: Sequence[str], tree: str) -> None:
    """Turn every way into other working trees that Python knows by now towards the worktree ``tree``."""
    installed = installed_folders()

    def turned(path: str) -> str:
        return functools.reduce(lambda way, top: _turned(way, top, tree, installed), others, path)

    sys.path[:] = [turned(path) for path in sys.path]
    if "PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(map(turned, os.environ["PYTHONPATH"].split(os.pathsep)))
    for name, module in list(sys.modules.items()):
        if name.startswith(_EDITABLE):
            _turn_finder(vars(module), turned)
    sys.path_importer_cache.clear()


def _turn_finder(names: MutableMapping[str, Any], turned: Any) -> None:
    """The tables of an editable installation by setuptools: packages to folders."""
    mapping, namespaces = names.get("MAPPING"), names.get("NAMESPACES")
    if isinstance(mapping, dict):
        mapping.update({name: turned(path) for name, path in mapping.items() if isinstance(path, str)})
    if isinstance(namespaces, dict):
        namespaces.update({name: list(map(turned, paths)) for name, paths in namespaces.items()})


def _turned(path: str, top: str, tree: str, installed: Collection[str]) -> str:
    real = os.path.realpath(path or os.curdir)
    if not path or not within(real, top) or within(real, tree) or any(within(real, one) for one in installed):
        return path
    return os.path.normpath(Path(tree, os.path.relpath(real, top)))


def load_plugin() -> tuple[str, ...]:
    """Arguments by which pytest loads this plugin where it is not installed."""
    known = any(one.value.partition(":")[0] == f"{OWN}.plugin" for one in metadata.entry_points(group="pytest11"))
    return () if known or f"{OWN}.plugin" in sys.argv else ("-p", f"{OWN}.plugin")


def installed_folders() -> tuple[str, ...]:
    """Where installed packages and the standard library lie, links resolved: not part of any revision."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(map(os.path.realpath, folders)))


def imported(names: Iterable[str]) -> dict[str, str]:
    """Files of modules of these names that this process has imported, those of this plugin aside."""
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in names)
    apart = (OWN, "__main__")
    return {name: file for name, file in files if isinstance(file, str) and name.partition(".")[0] not in apart}


def within(path: str, folder: str) -> bool:
    """Whether a path is that of the folder or lies in it, by their names."""
    return path == folder or path.startswith(f"{folder}{os.sep}")
