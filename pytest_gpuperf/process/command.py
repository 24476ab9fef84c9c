"""The command line of a child process: that of the run itself, for other tests and with files of its own."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.model.task import AS_COMMAND, TASK_FILE, ChildTask, write_task

WRITES = (
    ("xmlpath", "--junit-xml"), ("log_file", "--log-file"), ("basetemp", "--basetemp"), ("htmlpath", "--html"),
    ("report_log", "--report-log"), ("json_report_file", "--json-report-file"), ("allure_report_dir", "--alluredir"),
)  # fmt: skip
"""Options of pytest and of well-known plugins that name what it writes, and their flags."""
NOT_FOR_CHILDREN = ("--pdb", "--trace", "--debug", "--pastebin")
"""Flags that need a terminal, write files or upload, and cannot be taken back by a later one."""
WORKER_ARGUMENTS = "gpuperf_arguments"
"""Under this name a pytest-xdist worker is told the run's own command line."""


def child_command(config: pytest.Config, task: ChildTask, folder: Path) -> list[str]:
    """The command line of this run, for the modules of a task's tests, without touching the run's files.

    Every option of the user's, of whatever plugin or conftest, reaches the child; what follows them takes back what is
    not for it.  Leaves the task in ``folder`` for it.
    """
    write_task(task, folder / TASK_FILE)
    modules = dict.fromkeys(node.partition("::")[0] for node in task.nodes)
    options = config.stash[stash.OPTIONS]
    compared = [f"--gpuperf-baselines={options.baselines}"] if options.against else []  # its evidence is there already
    python = ("-m", "pytest") if is_module(config) else ("-c", AS_COMMAND)
    return [
        sys.executable, *python, *given_options(config), *own_options(config, folder, config.rootpath, config.inipath),
        *compared, f"--gpuperf-task={folder / TASK_FILE}", *(str(config.rootpath / module) for module in modules),
    ]  # fmt: skip


def run_arguments(config: pytest.Config) -> list[str]:
    """The run's command line after the program's name; in a pytest-xdist worker that of its controller."""
    given: Any = getattr(config, "workerinput", {}).get(WORKER_ARGUMENTS)
    return list(map(str, config.invocation_params.args if given is None else given))


def is_module(config: pytest.Config) -> bool:
    """Whether pytest was started by ``python -m pytest``, which has the current folder on its path."""
    program = getattr(config, "workerinput", {}).get("mainargv", sys.argv)[0]
    return Path(program).name == "__main__.py"


def given_options(config: pytest.Config) -> Iterator[str]:
    """The run's options, as they were written, that are for its children too."""
    places = Counter(given_places(config))
    for word in run_arguments(config):
        if places[word]:
            places[word] -= 1
        elif word.partition("=")[0] not in NOT_FOR_CHILDREN:
            yield word


def given_places(config: pytest.Config) -> list[str]:
    """Files, folders and tests that the run was given, as they were written; a process has its own ini file's."""
    by_hand = words_of(run_arguments(config))
    usual = set(config.getini("addopts")).difference(by_hand)
    return [place for place in map(str, config.getoption("file_or_dir") or ()) if place not in usual]


def own_options(config: pytest.Config, folder: Path, root: Path, ini: Path | None) -> Iterator[str]:
    """What takes back the options that are not for a child: its files go to ``folder``, pytest's root is ``root``."""
    own = folder / "pytest"
    own.mkdir(parents=True, exist_ok=True)
    yield f"--rootdir={root}"
    if ini is not None:
        yield f"--config-file={ini}"
    yield "--maxfail=0"
    if config.pluginmanager.hasplugin("terminal"):  # they are its own, and -p no:terminal is for the child, too
        yield from ("--verbosity=-1", "--tb=short", "--color=no")
    workers = config.getoption("numprocesses", None) or config.getoption("tx", None) or hasattr(config, "workerinput")
    same_python = config.stash[stash.OPTIONS].against_python is None  # else the child's may lack pytest-xdist
    if config.pluginmanager.hasplugin("xdist") and (workers or same_python):
        yield from ("-n", "0")
    if config.pluginmanager.hasplugin("_cov"):
        yield "--no-cov"
    if config.pluginmanager.hasplugin("cacheprovider"):  # --lf and --ff need the plugin, and find nothing here
        yield from ("-o", f"cache_dir={own / 'cache'}", "--last-failed-no-failures=all")
    named = {flag for option, flag in WRITES if config.getoption(option, None)}
    if config.pluginmanager.hasplugin("logging") and config.getini("log_file"):
        named.add("--log-file")
    yield from (f"{flag}={own / flag.lstrip('-')}" for flag in sorted(named))


def words_of(arguments: Iterable[object]) -> list[str]:
    """``arguments`` of a command and those in ``PYTEST_ADDOPTS``: what no file of the project gives."""
    return [*map(str, arguments), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
