"""Whether a process of one side of a comparison uses files of the other side.

A module that it imports, a shared library that it loads and a file that it reads may lie in another working tree of
the repository: it counts where its content is not what this side's own tree has in its place.  A module from elsewhere
that this side has in a root of its own is an installed copy, which both sides import: it counts too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.compile.cache import default_folder
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.revision.imports import imported, installed_folders, within

_PLUGIN = os.path.realpath(Path(__file__).parents[1])
_MAPS = Path("/proc/self/maps")
"""Tells which shared libraries this process has loaded."""
_LIBRARY = re.compile(r" r-xp .* (/.*\.so[^/\n]*)$", re.MULTILINE)
REMEDY = (
    "install the project with pip install -e, name files relative to the test file (Path(__file__).parent), or give "
    "the revision an environment of its own with --gpuperf-against-env"
)


class ForeignFiles:
    """Foreign files of one process, which runs in the working tree ``tree``; it may use no file of ``others``."""

    def __init__(self, root: Path, on_path: Iterable[str], others: Sequence[Path], tree: Path) -> None:
        """``root`` is pytest's; ``on_path`` are the folders that its ini file puts on the path."""
        self._tree, self._others = tree, tuple(map(str, others))
        self._installed = installed_folders()
        self._cache = os.path.realpath(default_folder())
        roots = (tree, tree / "src", root, root / "src", *(Path(os.path.realpath(path)) for path in on_path))
        self._roots = [one for one in roots if one.is_relative_to(tree)]
        self._read: list[str] = []
        self._checking, self._loads = False, False
        self._modules: set[str] = set()
        self._checked: set[tuple[str, str, str]] = set()
        self._found: dict[str, None] = {}

    def note_reads(self) -> None:
        """From now on, also check files that this process opens.  There is no end to it but the process's."""

        def note(event: str, arguments: tuple[object, ...]) -> None:
            if event == "open" and not self._checking and isinstance(arguments[0], str) and _reads(*arguments[1:3]):
                self._read.append(arguments[0] if arguments[0].startswith("/") else os.path.realpath(arguments[0]))
            self._loads |= event == "ctypes.dlopen"

        sys.addaudithook(note)

    def lines(self) -> tuple[str, ...]:
        """Why this process does not run this side's own code, a line for each file; empty if it does."""
        if not self._others:  # two environments of one working tree
            return ()
        self._checking = True
        new = [name for name in list(sys.modules) if name not in self._modules]
        used = [("imported", file, name) for name, file in imported(new).items()]
        used += [("read", file, "") for file in self._read]
        if (new or self._loads) and _MAPS.exists():  # a look at the libraries takes a millisecond
            used += [("loaded", file, "") for file in _LIBRARY.findall(_MAPS.read_text(errors="surrogateescape"))]
        self._read.clear()
        for one in dict.fromkeys(used):
            if one not in self._checked and (reason := self._reason(*one)):
                self._found[reason] = None
        self._modules.update(new)
        self._checked.update(used)
        self._checking = self._loads = False
        return tuple(self._found)

    def _reason(self, how: str, path: str, module: str) -> str:
        """Why one file is foreign; empty if it is not."""
        file = os.path.realpath(path)
        if within(file, str(self._tree)):
            return ""
        tops = [top for top in self._others if within(file, top)]
        if tops and not any(within(file, one) for one in self._installed):
            inside = os.path.relpath(file, max(tops, key=len))
            if (how == "read" and self._is_a_tools(file, inside)) or _content(file) == _content(self._tree / inside):
                return ""
            there = f"differs from {inside}" if (self._tree / inside).is_file() else "is not in the tree"
            return f"{file}, of another working tree, was {how} and {there} of this side: {REMEDY}"
        *above, last = module.split(".")
        names = Path(*above, f"{last}.py"), Path(*above, last, "__init__.py")
        own = [root / name for root in self._roots for name in names if last and (root / name).is_file()]
        if not own or module.partition(".")[0] in sys.stdlib_module_names:
            return ""
        here = own[0].relative_to(self._tree)
        return (
            f"{file} was imported as {module}, though this side has {here}, so both would run the same code: {REMEDY}"
        )

    def _is_a_tools(self, file: str, inside: str) -> bool:
        """Whether pytest, git or this plugin reads it for itself."""
        hidden = any(part.startswith(".") or part == "__pycache__" for part in Path(inside).parts)
        return hidden or within(file, self._cache) or within(file, _PLUGIN)


FOREIGN: pytest.StashKey[ForeignFiles] = pytest.StashKey()


def foreign_files_of(config: pytest.Config) -> ForeignFiles:
    """Those of this process, which runs a side of a comparison; made at first use."""
    if FOREIGN not in config.stash:
        task, revision = config.stash[stash.OPTIONS].task, stash.run_of(config).revision
        if isinstance(task, RevisionTask):
            tree, others = task.revision.tree, task.revision.others
        else:
            assert revision is not None
            tree, others = revision.top, tuple({*revision.others, revision.tree} - {revision.top})
        on_path = config.getini("pythonpath")
        config.stash[FOREIGN] = ForeignFiles(config.rootpath.resolve(), on_path, others, tree)
    return config.stash[FOREIGN]


def _reads(mode: object, flags: object) -> bool:
    """Whether a file is opened for reading: ``open`` has a mode, ``os.open`` flags alone."""
    if isinstance(mode, str):
        return not set(mode) & {"w", "a", "x"}
    return isinstance(flags, int) and not flags & os.O_WRONLY


def _content(path: str | Path) -> bytes:
    """Content of a file; an unreadable one equals no other."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return os.fsencode(path)
