"""Which code a process that stands for another revision imports: never that of the working tree.

``enter`` comes before all imports of the tests' own: it turns what leads into the working tree towards the worktree,
and ``leaks`` names, afterwards, what came from elsewhere all the same.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

OWN = "pytest_gpuperf"
"""This plugin is what both sides are measured with, and no side's own code."""
_EDITABLE = "__editable__"
"""How the modules begin that setuptools puts in the place of a folder on the path."""
BOOTSTRAP = """\
import os, sys
root, others, tree, as_module = sys.argv[1:5]
del sys.argv[1:5]
getattr(sys.flags, "safe_path", 0) or sys.path.pop(0)
sys.path.insert(0, root)
from pytest_gpuperf.context import revision_imports
sys.modules["pytest_gpuperf"].__doc__ += " PYTEST_DONT_REWRITE"
sys.path[:1] = [os.getcwd()] if as_module else []
revision_imports.enter(others.split(os.pathsep), tree)
import pytest
sys.exit(pytest.main([*sys.argv[1:], *revision_imports.load_plugin()]))
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
    if not path or not _within(real, top) or _within(real, tree) or any(_within(real, one) for one in installed):
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


def imported() -> dict[str, str]:
    """File of every module that this process has imported, links resolved; those of this plugin aside."""
    files = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name.partition(".")[0] not in (OWN, "__main__"):
            files[name] = os.path.realpath(file)
    return files


def imported_among(files: Collection[Path]) -> set[Path]:
    """Those of ``files``, whose paths have no links, that this process has imported."""
    names = {file.name for file in files}
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    those = {file for file in found if isinstance(file, str) and os.path.basename(file) in names}  # noqa: PTH119
    return {Path(os.path.realpath(file)) for file in those}.intersection(files)


def foreign_imports(root: Path, on_path: Iterable[str], others: Iterable[Path], tree: Path) -> list[str]:
    """``leaks`` of this process, which runs in the working tree ``tree``.

    ``root`` is pytest's, ``on_path`` what its ini file puts on the path.
    """
    real = [Path(os.path.realpath(path)) for path in on_path]
    roots = dict.fromkeys([tree, tree / "src", root, root / "src", *real])
    return leaks(imported(), others, tree, [one for one in roots if one.is_relative_to(tree)], installed_folders())


def leaks(
    modules: Mapping[str, str], others: Iterable[Path], tree: Path, roots: Iterable[Path], installed: Collection[str]
) -> list[str]:
    """Why this process does not run the revision's own code, a line each; empty if it does.

    ``modules`` are files by name; ``others`` working trees of the repository but ``tree``; ``roots`` folders of the
    worktree that modules are imported from; ``installed`` as by ``installed_folders``.
    """
    foreign = [line for top in others for line in _of_a_working_tree(modules, str(top), str(tree), installed)]
    return [*foreign, *_shadowed(modules, tree, roots)]


def _of_a_working_tree(modules: Mapping[str, str], top: str, tree: str, installed: Collection[str]) -> Iterator[str]:
    for name, file in sorted(modules.items()):
        if _within(file, top) and not _within(file, tree) and not any(_within(file, one) for one in installed):
            compiled = not file.endswith(".py")
            how = "a compiled extension built in place" if compiled else "an editable installation, a link or the path"
            remedy = (
                "build it in an environment of its own and name that with --gpuperf-against-python"
                if compiled
                else "install it by a path that can be turned (pip install -e), or name an environment of its own with "
                "--gpuperf-against-python"
            )
            yield f"{name} was imported from the working tree, {file}: {how} leads there; {remedy}"


def _shadowed(modules: Mapping[str, str], tree: Path, roots: Iterable[Path]) -> Iterator[str]:
    """Modules that the worktree has as well, and that came from elsewhere."""
    standard = sys.stdlib_module_names
    for name, file in sorted(modules.items()):
        if name.partition(".")[0] in standard or _within(file, str(tree)):
            continue
        own = next((one for one in _homes(name, roots) if one.is_file()), None)
        if own is not None:
            yield _installed_copy(name, file, own.relative_to(tree))


def copies(
    modules: Mapping[str, str], others: Iterable[Path], tree: Path, packages: Mapping[str, Collection[Path]],
    installed: Collection[str],
) -> Iterator[str]:  # fmt: skip
    """Modules that were copied out of a working tree: byte for byte what it has in one of ``packages``, a line each.

    ``packages`` are folders that hold a package of this name, as seen from the top, wherever they lie; some may hold
    a library of others, so that the name alone tells nothing.  An environment may lie inside of a working tree.
    """
    trees = (tree, *others)
    for name, file in sorted(modules.items()):
        roots = packages.get(name.partition(".")[0], ())
        in_a_tree = any(_within(file, str(one)) for one in trees)
        if not roots or (in_a_tree and not any(_within(file, one) for one in installed)):
            continue
        for own in _homes(name, [tree / root for root in roots]):
            inside = own.relative_to(tree)
            if own.is_file() and any(_same_text(Path(file), one / inside) for one in trees):
                yield _installed_copy(name, file, inside)
                break


def _same_text(one: Path, other: Path) -> bool:
    try:
        text = one.read_bytes()
        return bool(text.strip()) and text == other.read_bytes()
    except OSError:
        return False


def _installed_copy(name: str, file: str, own: Path) -> str:
    return (
        f"{name} was imported from {file}, though the revision has {own}: both sides would run the same code; install "
        "the project with pip install -e, let the ini setting pythonpath name its folder, or name an environment of "
        "its own with --gpuperf-against-python"
    )


def _homes(name: str, roots: Iterable[Path]) -> Iterator[Path]:
    """Where the worktree would have a module; a package that it lacks is not looked into."""
    parts = name.split(".")
    for root in roots:
        if len(parts) > 1 and not (root / parts[0]).is_dir():
            continue
        place = root.joinpath(*parts)
        yield from (place.with_name(f"{place.name}.py"), place / "__init__.py")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}{os.sep}")
