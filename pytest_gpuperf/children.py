"""What the child processes of a run have in common: command line, choice of tests, errors shown, a word of progress."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.options import forwarded

_PROGRESS = re.compile(r"\[ *\d+%\]$")
"""How a line of pytest's progress ends, which begins with an E as well if a test's set-up failed."""


def child_command(config: pytest.Config, node_ids: Iterable[str]) -> list[str]:
    """The command line that runs the modules of these tests just as this run does, without its reports."""
    modules = list(dict.fromkeys(node.partition("::")[0] for node in node_ids))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={config.rootpath}"]
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
    return [*command, *forwarded(config.stash[stash.OPTIONS]), *modules]


def keep(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    """In a child: keep the tests that it is there for, and tell pytest which it leaves out."""
    dropped = [item for item in items if not wanted(item)]
    items[:] = [item for item in items if wanted(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def errors_in(log: Iterable[str]) -> list[str]:
    """The errors that a child's pytest shows, a line each."""
    return [line[1:].strip() for line in log if line.startswith("E ") and not _PROGRESS.search(line)]


def progress_of(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line on the terminal, if there is one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def show(text: str) -> None:
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"gpuperf: {text}")

    return show
