"""The ``gpuperf`` command: one module a command, with its arguments and its work.

Exit status 0: done.  1: the answer is no (something is missing or unreadable, a kernel got worse), or the output cannot
be written.  2: wrong usage, or an ``audit`` without a comparison.  141: the reader of the output closed the pipe.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import escape_ci_commands
from pytest_gpuperf.model import __version__

EXIT_PIPE_CLOSED = 141
"""128 and the number of SIGPIPE."""

COMMANDS = {
    "doctor": "say what this machine can measure, what is missing and what to do",
    "selftest": "find out, on the GPU, what this machine can gate (about four minutes)",
    "init": "write a first test, settings and a CI workflow into a repository",
    "examples": "copy kernels of the example suite with their tests, to break them",
    "explain": "say what a workload costs and why it changed, from the last run",
    "diff": "say what a change of the baselines means, kernel by kernel, from git",
    "bisect": "find the commit that made a test's kernels slower",
    "audit": "gate the machine code of wheels and libraries that are already built",
    "report": "make a page or Markdown of a run, or of several, by their reports in JSON",
    "comment": "make or update the comment of a pull or merge request, in CI",
    "history": "show times and registers over the commits of the baselines",
    "baselines": "list baselines, let them follow a renaming, remove some",
}
"""Their descriptions.  A command has a module of its own, with ``add_arguments`` and ``execute``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parsed = build_parser(given[0] if given else "-").parse_args(given)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="backslashreplace")  # in the place of a character that the encoding lacks
    command = _module_of(parsed.command)
    try:
        status: int = command.execute(parsed, _write)
        sys.stdout.flush()
    except BrokenPipeError:  # gpuperf explain ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        return EXIT_PIPE_CLOSED
    except (GpuperfError, OSError) as problem:
        sys.stderr.write(escape_ci_commands(f"gpuperf {parsed.command}: {problem}") + "\n")
        return getattr(command, "PROBLEM_STATUS", 1)
    return status


def _write(text: str) -> object:
    """Print, at once, text whose names and words others may have had a hand in."""
    return sys.stdout.write(escape_ci_commands(text)), sys.stdout.flush()


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; of the one that is named ``only`` it knows the arguments."""
    parser = argparse.ArgumentParser(
        prog="gpuperf", description="Commands of pytest-gpuperf. pytest --help lists the flags of the plugin."
    )
    parser.add_argument("--version", action="version", version=f"gpuperf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, says in COMMANDS.items():
        command = commands.add_parser(name, help=says, description=f"{says[:1].upper()}{says[1:]}.")
        if only in (None, name):
            _module_of(name).add_arguments(command)
    return parser


def _module_of(command: str) -> ModuleType:
    return importlib.import_module(f"pytest_gpuperf.cli.{command}_command")
