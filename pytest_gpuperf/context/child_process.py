"""What the child processes of a run have in common: command line, the run itself, choice of tests, errors, progress."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.config.options import forwarded
from pytest_gpuperf.context import stash
from pytest_gpuperf.model.task import TASK_FILE, ChildTask, ProfileTask, RecordTask, write_task

WRITES = (("xmlpath", "--junit-xml"), ("log_file", "--log-file"), ("basetemp", "--basetemp"), ("htmlpath", "--html"))
"""Options of pytest (the last one of pytest-html) that name what it writes, and their flags."""
_PROGRESS = re.compile(r"\[ *\d+%\]$")
"""How a line of pytest's progress ends, which begins with an E as well if a test's set-up failed."""


def child_command(config: pytest.Config, task: ChildTask, folder: Path) -> list[str]:
    """The command line that runs the modules of a task's tests as this run does, without touching its files.

    Leaves the task in ``folder`` for it.
    Of the run's own command line it has this plugin's flags, ``-o``, ``-p``, ``--import-mode`` and the root.  What
    other plugins and conftests declare does not reach a child, unless by the ini file or ``PYTEST_ADDOPTS``; what
    flags there have written goes below ``folder``.
    """
    modules = list(dict.fromkeys(node.partition("::")[0] for node in task.nodes))
    write_task(task, folder / TASK_FILE)
    command = [sys.executable, "-m", "pytest", "-q", f"--rootdir={config.rootpath}"]
    command.append(f"--import-mode={config.getoption('importmode')}")
    if config.inipath is not None:
        command.append(f"--config-file={config.inipath}")
    for override in config.getoption("override_ini") or ():
        command += ["-o", override]
    for plugin in config.getoption("plugins") or ():
        command += ["-p", plugin]
    if config.pluginmanager.hasplugin("xdist"):
        command += ["-n", "0"]
    if config.pluginmanager.hasplugin("_cov"):
        command.append("--no-cov")
    command += [*_files_of_its_own(config, folder), *forwarded(config.stash[stash.OPTIONS])]
    return [*command, *modules, f"--gpuperf-task={folder / TASK_FILE}"]


def run_child(
    config: pytest.Config, command: Sequence[str], log: Path, limit_s: float, environ: Mapping[str, str] | None = None
) -> int | None:
    """Run a child with its output in ``log``: its exit status, or None if it was ended for not being done in time.

    Raises ``OSError`` if it cannot be started.
    """
    with log.open("wb") as output:
        try:
            return subprocess.run(
                command, cwd=config.rootpath, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=environ, timeout=limit_s, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return None


def log_lines(log: Path) -> list[str]:
    """What a child printed; nothing if it was never started."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []


def _files_of_its_own(config: pytest.Config, folder: Path) -> list[str]:
    own = folder / "pytest"
    own.mkdir(parents=True, exist_ok=True)
    flags = ["--maxfail=0"]
    if config.pluginmanager.hasplugin("cacheprovider"):  # --lf and --ff need the plugin, and find nothing here
        flags += ["-o", f"cache_dir={own / 'cache'}", "--last-failed-no-failures=all"]
    named = [flag for option, flag in WRITES if config.getoption(option, None)]
    if config.getini("log_file"):
        named.append("--log-file")
    return [*flags, *(f"{flag}={own / flag.lstrip('-')}" for flag in named)]


def select(config: pytest.Config, items: list[pytest.Item], task: ChildTask) -> None:
    """Keep the tests that the task names, and tell pytest which are left out; a recording process shuffles them.

    Where only counters are taken, tests without ``gpuperf`` have nothing to run for.
    """
    nodes, fixtures = set(task.nodes), {"gpuperf"} if isinstance(task, ProfileTask) else set()
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        fits = item.nodeid in nodes and fixtures <= set(getattr(item, "fixturenames", ()))
        (kept if fits else dropped).append(item)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)
    if isinstance(task, RecordTask):
        random.Random(task.index).shuffle(items)


LOG_LINES = 25
"""Last lines of a child's output that a message quotes."""


def errors_in(log: Iterable[str]) -> list[str]:
    """What pytest gives as errors in the lines that it prints, in their order: those that begin with ``E``."""
    return [line[1:].strip() for line in log if line.startswith("E ") and not _PROGRESS.search(line)]


def progress_of(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line on the terminal, if there is one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def show(text: str) -> None:
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"gpuperf: {text}")

    return show
