"""The ``gpuperf`` command: one module a command, which declares its arguments beside what it does.

Exit status: 0 done; 1 the answer is no (something needed is missing or cannot be read, a kernel got worse), or the
output cannot be written; 2 wrong usage, or an ``audit`` that could compare nothing; 125 and 128, from ``bisect --step``
alone, let ``git bisect run`` skip the commit or, after wrong usage or an error, stop; 141 the reader of the output
closed the pipe.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from types import ModuleType

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.model import __version__

EXIT_PIPE_CLOSED = 141
"""128 and the number of SIGPIPE."""
EXIT_ABORT = 128
"""``git bisect run`` stops at this and more."""

COMMANDS = {
    "doctor": "say what this machine can measure, what is missing and what to do",
    "selftest": "find out, on the GPU, what this machine can gate (about four minutes)",
    "init": "write a first test, settings and a CI workflow into a repository",
    "examples": "copy kernels of the example suite with their tests, to break them",
    "explain": "say what holds a workload back and why it changed, from the last run or a baseline",
    "diff": "say what a change of the baselines means, kernel by kernel, from git",
    "bisect": "find the commit that made a test's kernels slower",
    "audit": "gate the machine code of wheels and libraries that are already built",
    "report": "make a page or Markdown of a run, or of several, by their reports in JSON",
    "comment": "make or update the comment of a pull or merge request, in CI",
    "history": "show times and registers over the commits of the baselines",
    "baselines": "list what is on record, let records follow a renaming, remove some",
}
"""What each does.  A command has a module of its own, with ``add_arguments`` and ``execute``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    return _abort_on_error(words) if words[:1] == ["bisect"] and "--step" in words else _status(words)


def _abort_on_error(words: Sequence[str]) -> int:
    """The status of ``bisect --step``: git would take that of wrong usage or of an error for a bad commit."""
    try:
        return _status(words, problem_status=EXIT_ABORT)
    except SystemExit as end:
        return EXIT_ABORT if end.code else 0
    except Exception:  # noqa: BLE001 whatever it is, it says nothing of the commit
        traceback.print_exc()
        return EXIT_ABORT


def _status(words: Sequence[str], problem_status: int = 1) -> int:
    parsed = _parse(words)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="backslashreplace")  # in the place of a character that the encoding lacks
    command = _module_of(parsed.command)
    try:
        status: int = command.execute(parsed, _write)
        sys.stdout.flush()
    except BrokenPipeError:  # gpuperf explain ... | head
        _write_no_more()
        return EXIT_PIPE_CLOSED
    except (GpuperfError, OSError) as problem:
        sys.stderr.write(harmless(f"gpuperf {parsed.command}: {problem}") + "\n")
        return max(problem_status, getattr(command, "PROBLEM_STATUS", 1))
    return status


def _write(text: str) -> object:
    """Print text whose names and words others may have had a hand in.  Raises ``OSError``."""
    try:
        return sys.stdout.write(harmless(text))
    except BrokenPipeError:
        raise
    except OSError as problem:  # gpuperf report > /dev/full
        _write_no_more()
        raise GpuperfError(f"its output cannot be written ({problem.strerror or problem})") from problem


def _write_no_more() -> None:
    """Let what is still to be printed go nowhere: the interpreter flushes once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- arguments -----------------------------------------------------------------------------------


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; of the one that is named ``only`` it knows the arguments."""
    return _built(only)[0]


def _built(only: str | None) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="gpuperf", description="Commands beside the pytest-gpuperf plugin, whose own flags pytest --help lists."
    )
    parser.add_argument("--version", action="version", version=f"gpuperf {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands = {
        name: parsers.add_parser(name, help=says, description=f"{says[:1].upper()}{says[1:]}.")
        for name, says in COMMANDS.items()
    }
    for name in commands if only is None else commands.keys() & {only}:
        _module_of(name).add_arguments(commands[name])
    return parser, commands


def _module_of(command: str) -> ModuleType:
    return importlib.import_module(f"pytest_gpuperf.cli.{command}_command")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command; wrong usage ends the process with status 2, and names the nearest command or flag."""
    named = words[0] if words else "-"
    parser, commands = _built(named)
    if not named.startswith("-") and named not in commands:
        parser.error(f"there is no command {named!r}{_near([named], commands) or ': gpuperf --help lists all'}")
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        command = commands[parsed.command]
        near = _near(unknown, re.findall(r"--[a-z-]+", command.format_usage()))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return parsed


def _near(words: Iterable[str], known: Iterable[str]) -> str:
    """A question after the name that is nearest to one of ``words``; empty if none is near."""
    names = list(known)
    near = [name for word in words for name in difflib.get_close_matches(word.partition("=")[0], names, n=1)]
    return f": did you mean {', '.join(dict.fromkeys(near))}?" if near else ""


if __name__ == "__main__":
    sys.exit(main())
