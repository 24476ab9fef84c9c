"""Whether a process that stands for one side of a comparison uses files of the other side.

A module that it imports, a shared library that it loads and a file that it reads may lie in another working tree of
the repository: it counts where its content is not what this side's own tree has in its place.  An installed copy of
the project counts too, since both sides import it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import run_git
from pytest_gpuperf.compile.cache import default_folder
from pytest_gpuperf.context import stash
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.revision.imports import imported, installed_folders, within
from pytest_gpuperf.revision.worktree import repository_of, working_trees

_PLUGIN = os.path.realpath(Path(__file__).parents[1])
_MAPS = Path("/proc/self/maps")
_PACKAGE = "/__init__.py"
_ENVIRONMENT = "or name an environment of its own with --gpuperf-against-python"
REMEDIES = {
    "imported": f"install the project by a path that can be turned (pip install -e), {_ENVIRONMENT}",
    "loaded": "build it below each tree and name it relative to the test file (Path(__file__).parent), " + _ENVIRONMENT,
    "read": "name it relative to the test file (Path(__file__).parent)",
}


class ForeignFiles:
    """Of one process, which runs in the working tree ``tree``; ``others`` are those that it may use nothing of."""

    def __init__(self, root: Path, on_path: Iterable[str], others: Sequence[Path], tree: Path) -> None:
        """``root`` is pytest's, ``on_path`` what its ini file puts on the path."""
        self._tree, self._others = str(tree), tuple(map(str, others))
        self._installed = installed_folders()
        self._cache = os.path.realpath(default_folder())
        roots = [tree, tree / "src", root, root / "src", *(Path(os.path.realpath(path)) for path in on_path)]
        self._roots = [one for one in dict.fromkeys(roots) if one.is_relative_to(tree)]
        self._packages = _packages(tree)
        self._read: list[str] = []
        self._checking = False
        self._checked: set[tuple[str, str]] = set()
        self._found: dict[str, str] = {}

    def note_reads(self) -> None:
        """From now on, also check files that this process opens.  There is no end to it but the process's."""

        def note(event: str, arguments: tuple[object, ...]) -> None:
            if event == "open" and not self._checking and isinstance(arguments[0], str) and _reads(*arguments[1:3]):
                self._read.append(arguments[0] if arguments[0].startswith("/") else os.path.realpath(arguments[0]))

        sys.addaudithook(note)

    def lines(self) -> tuple[str, ...]:
        """Why this process does not run this side's own code, a line each; empty if it does."""
        self._checking = True
        try:
            for name, file in imported().items():
                self._check("imported", file, name)
            for file in _libraries():
                self._check("loaded", file)
            while self._read:
                self._check("read", self._read.pop())
        finally:
            self._checking = False
        return tuple(self._found.values())

    def _check(self, how: str, path: str, module: str = "") -> None:
        if (path, module) in self._checked:
            return
        self._checked.add((path, module))
        file = os.path.realpath(path)
        if within(file, self._tree):
            return
        if not any(within(file, one) for one in self._installed):
            tops = [top for top in self._others if within(file, top)]
            if tops:
                self._compare(how, file, os.path.relpath(file, max(tops, key=len)))
                return
        if module:
            self._compare_copy(file, module)

    def _compare(self, how: str, file: str, inside: str) -> None:
        """A file of another working tree with that in its place here."""
        ours = any(within(file, one) for one in (self._cache, _PLUGIN)) or any(
            part.startswith(".") or part == "__pycache__" for part in Path(inside).parts
        )
        if how == "read" and ours:  # pytest's, git's, or this plugin's
            return
        own = Path(self._tree, inside)
        if not _is_same(Path(file), own):
            there = f"differs from {inside} of this side" if own.is_file() else "is not in the tree of this side"
            line = f"{file}, of another working tree, was {how} and {there}: {REMEDIES[how]}"
            self._found.setdefault(file, line)

    def _compare_copy(self, file: str, module: str) -> None:
        """A module from outside of all working trees with those of its name here.

        In folders that modules are imported from, the name tells; a package elsewhere may be a library's, so that
        only a copy of what one of the trees has counts.
        """
        package = module.partition(".")[0]
        if package in sys.stdlib_module_names:
            return
        own = next((one for one in _homes(module, self._roots) if one.is_file()), None)
        for home in _homes(module, self._packages.get(package, ())) if own is None else ():
            inside = home.relative_to(self._tree)
            trees = (self._tree, *self._others)
            if home.is_file() and home.stat().st_size and any(_is_same(Path(file), Path(top, inside)) for top in trees):
                own = home
        if own is not None:
            inside = own.relative_to(self._tree)
            line = f"{file} was imported as {module}, though this side has {inside}: both sides would run the same code"
            self._found.setdefault(file, f"{line}; {REMEDIES['imported']}")


FOREIGN: pytest.StashKey[ForeignFiles] = pytest.StashKey()


def foreign_files_of(config: pytest.Config) -> ForeignFiles:
    """Those of this process, made at first use.  Raises ``RevisionError``."""
    if FOREIGN not in config.stash:
        task = config.stash[stash.OPTIONS].task
        if isinstance(task, RevisionTask):
            tree, others = task.tree, task.others
        else:
            tree = repository_of(config.rootpath).top
            others = tuple(one for one in working_trees(tree) if one != tree)
        on_path = config.getini("pythonpath")
        config.stash[FOREIGN] = ForeignFiles(config.rootpath.resolve(), on_path, others, tree)
    return config.stash[FOREIGN]


def _reads(mode: object, flags: object) -> bool:
    """Whether a file is opened for reading: ``open`` has a mode, ``os.open`` flags alone."""
    if isinstance(mode, str):
        return not set(mode) & {"w", "a", "x"}
    return isinstance(flags, int) and not flags & os.O_WRONLY


def _libraries() -> set[str]:
    """Shared libraries that this process has loaded; none where the system does not tell."""
    with contextlib.suppress(OSError):
        words = (line.split(maxsplit=5) for line in _MAPS.read_text(errors="surrogateescape").splitlines())
        return {fields[5] for fields in words if len(fields) == 6 and ".so" in os.path.basename(fields[5])}  # noqa: PTH119
    return set()


def _is_same(one: Path, other: Path) -> bool:
    """Whether both are files of the same content."""
    try:
        return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _packages(tree: Path) -> dict[str, set[Path]]:
    """Folders of ``tree`` with a tracked package that is in no other; by its name."""
    names = os.fsdecode(run_git(tree, "ls-files", "-z").stdout).split("\0")
    packages = {tree / name.removesuffix(_PACKAGE) for name in names if name.endswith(_PACKAGE)}
    found: dict[str, set[Path]] = {}
    for one in packages:
        if one.parent not in packages:
            found.setdefault(one.name, set()).add(one.parent)
    return found


def _homes(module: str, roots: Collection[Path]) -> Iterator[Path]:
    """Where the tree would have a module; a package that it lacks is not looked into."""
    parts = module.split(".")
    for root in roots:
        if len(parts) == 1 or (root / parts[0]).is_dir():
            place = root.joinpath(*parts)
            yield from (place.with_name(f"{place.name}.py"), place / "__init__.py")
