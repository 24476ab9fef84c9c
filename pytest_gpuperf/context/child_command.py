"""The command line of a child process: that of the run itself, for other tests and with files of its own."""

from __future__ import annotations

import fnmatch
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.revision_imports import BOOTSTRAP, bootstrap_arguments
from pytest_gpuperf.context.worktree import renamed_since
from pytest_gpuperf.model.safe_python import AS_COMMAND
from pytest_gpuperf.model.task import TASK_FILE, ChildTask, OpponentTask, RevisionTask, write_task
from pytest_gpuperf.read_options import place_of

WRITES = (
    ("xmlpath", "--junit-xml"), ("log_file", "--log-file"), ("basetemp", "--basetemp"), ("htmlpath", "--html"),
    ("report_log", "--report-log"), ("json_report_file", "--json-report-file"), ("allure_report_dir", "--alluredir"),
)  # fmt: skip
"""Options of pytest and of well-known plugins that name what it writes, and their flags."""
NOT_FOR_CHILDREN = ("--pdb", "--trace", "--debug", "--pastebin")
"""Flags that need a terminal, write files or upload, and cannot be taken back by a later one."""
WORKER_ARGUMENTS = "gpuperf_arguments"
"""Under this name a pytest-xdist worker is told the run's own command line."""


def child_command(config: pytest.Config, task: ChildTask, folder: Path, *, whole: bool = False) -> list[str]:
    """The command line of this run, for the modules of a task's tests, without touching the run's files.

    Every option of the user's, of whatever plugin or conftest, reaches the child; what follows them takes back what is
    not for it.  Leaves the task in ``folder`` for it.  With ``whole`` the child collects what the run collects, so that
    conftests of other folders, which may declare options, are read too.
    """
    write_task(task, folder / TASK_FILE)
    modules = dict.fromkeys(node.partition("::")[0] for node in task.nodes)
    places = _places(config) if whole else [str(config.rootpath / module) for module in modules]
    return [
        *_python(config), *_options(config), *_of_this_run(config, folder), f"--gpuperf-task={folder / TASK_FILE}",
        *places,
    ]  # fmt: skip


def revision_command(
    config: pytest.Config, task: RevisionTask | OpponentTask, folder: Path, python: Path | None, archs: Sequence[str]
) -> list[str] | None:
    """The command line of this run for the worktree of another revision; None if that has none of its places.

    The revision is configured by its own ini file.  ``python`` is another than this one's.  Raises
    ``pytest.UsageError`` for a place outside of the repository.
    """
    write_task(task, folder / TASK_FILE)
    given = _places(config)
    places = list(dict.fromkeys(place for one in given for place in there(config, task, one)))
    if given and not places:
        return None
    as_module = "-m" in _python(config)
    root = task.tree / config.rootpath.resolve().relative_to(task.top)
    ini = None if config.inipath is None else root / config.inipath.name
    return [
        str(python or sys.executable), "-c", BOOTSTRAP,
        *bootstrap_arguments(task.others, task.tree, as_module=as_module), *_options(config),
        *_of_its_own(config, folder, root, ini if ini is not None and ini.is_file() else None),
        "--continue-on-collection-errors", f"--gpuperf-task={folder / TASK_FILE}", f"--gpuperf-arch={','.join(archs)}",
        *places,
    ]  # fmt: skip


def there(config: pytest.Config, task: RevisionTask | OpponentTask, place: str) -> list[str]:
    """Where the worktree has the file or folder of a place, under this name or what git says that was renamed.

    Raises ``pytest.UsageError`` for a place outside of the repository.
    """
    given = place_of(config, place.partition("::")[0])
    start = config.invocation_params.dir
    seen = (given, start.resolve() / os.path.relpath(given, start), given.resolve())  # links inside of it are kept
    paths = [path for path in map(Path, map(os.path.normpath, seen)) if path.is_relative_to(task.top)]
    inside = next((path.relative_to(task.top) for path in (*filter(Path.exists, paths), *paths)), None)
    if inside is None:
        raise pytest.UsageError(
            f"{place} lies outside of the repository {task.top}, so --gpuperf-against has no other revision of it: "
            "start pytest in the repository that the tests belong to"
        )
    if (task.tree / inside).exists():
        return [str(task.tree / inside)]
    origins = sorted(renamed_since(task.top, task.tree).items())
    patterns = config.getini("python_files")
    return [
        str(task.tree / was)
        for name, was in origins
        if name == inside or (inside in name.parents and any(fnmatch.fnmatch(was.name, one) for one in patterns))
    ]


def same_command(config: pytest.Config, folder: Path) -> list[str]:
    """The command line of this run, for the same tests, without touching the run's files; ``folder`` is for its own."""
    return [*_python(config), *_options(config), *_of_this_run(config, folder), *_places(config)]


def run_arguments(config: pytest.Config) -> list[str]:
    """The run's command line after the program's name; in a pytest-xdist worker that of its controller."""
    given: Any = getattr(config, "workerinput", {}).get(WORKER_ARGUMENTS)
    return list(map(str, config.invocation_params.args if given is None else given))


def words_of(arguments: Iterable[object]) -> list[str]:
    """``arguments`` of a command and those in ``PYTEST_ADDOPTS``: what no file of the project gives."""
    return [*map(str, arguments), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]


def _python(config: pytest.Config) -> Sequence[str]:
    """Python and pytest, with the same folders on the path as here."""
    program = getattr(config, "workerinput", {}).get("mainargv", sys.argv)[0]
    as_module = Path(program).name == "__main__.py"  # python -m pytest
    return (sys.executable, "-m", "pytest") if as_module else (sys.executable, "-c", AS_COMMAND)


def _options(config: pytest.Config) -> Iterator[str]:
    places = Counter(_places(config))
    for word in run_arguments(config):
        if places[word]:
            places[word] -= 1
        elif word.partition("=")[0] not in NOT_FOR_CHILDREN:
            yield word


def _places(config: pytest.Config) -> list[str]:
    """Files, folders and tests that the run was given, as they were written; a process has its own ini file's."""
    by_hand = words_of(run_arguments(config))
    usual = set(config.getini("addopts")).difference(by_hand)
    return [place for place in map(str, config.getoption("file_or_dir") or ()) if place not in usual]


def _of_this_run(config: pytest.Config, folder: Path) -> Iterator[str]:
    yield from _of_its_own(config, folder, config.rootpath, config.inipath)
    options = config.stash[stash.OPTIONS]
    if options.against:  # the evidence of that revision is there already
        yield f"--gpuperf-baselines={options.baselines}"


def _of_its_own(config: pytest.Config, folder: Path, root: Path, ini: Path | None) -> Iterator[str]:
    own = folder / "pytest"
    own.mkdir(parents=True, exist_ok=True)
    yield f"--rootdir={root}"
    if ini is not None:
        yield f"--config-file={ini}"
    yield "--maxfail=0"
    if config.pluginmanager.hasplugin("terminal"):  # they are its own, and -p no:terminal is for the child, too
        yield from ("--verbosity=-1", "--tb=short", "--color=no")
    if config.pluginmanager.hasplugin("xdist"):
        yield from ("-n", "0")
    if config.pluginmanager.hasplugin("_cov"):
        yield "--no-cov"
    if config.pluginmanager.hasplugin("cacheprovider"):  # --lf and --ff need the plugin, and find nothing here
        yield from ("-o", f"cache_dir={own / 'cache'}", "--last-failed-no-failures=all")
    named = {flag for option, flag in WRITES if config.getoption(option, None)}
    if config.pluginmanager.hasplugin("logging") and config.getini("log_file"):
        named.add("--log-file")
    yield from (f"{flag}={own / flag.lstrip('-')}" for flag in sorted(named))
