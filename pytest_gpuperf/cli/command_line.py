"""The ``gpuperf`` command: parses arguments and hands over to the room that does the work.

Exit status: 0 done; 1 the answer is no (something needed is missing or cannot be read, a kernel got worse, pruning was
refused, ``--check`` found something), or the output cannot be written; 2 wrong usage, or an ``audit`` that could
compare nothing; 125 and 128, from ``bisect-step`` alone, let ``git bisect run`` skip the commit or, after wrong usage
or an error, stop; 141 the reader of the output closed the pipe.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence

from pytest_gpuperf.cli.argument_parser import parse
from pytest_gpuperf.formatting import harmless

EXIT_PIPE_CLOSED = 141
"""128 and the number of SIGPIPE."""
EXIT_ABORT = 128
"""``git bisect run`` stops at this and more."""
EXIT_REFUSED = 2
"""What was given cannot be read: as of a run that was interrupted."""

MODULES = {"bisect-step": "bisect_command"}
"""Of commands that share one; any other has its own: ``explain_command``."""
PROBLEM_STATUS = {"audit": EXIT_REFUSED, "bisect-step": EXIT_ABORT}
"""The exit status of a command that could not do its work, if that is not 1."""


class Unwritten(Exception):
    """The command's own output cannot be written; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    return _abort_on_error(words) if words[:1] == ["bisect-step"] else _status(words)


def _abort_on_error(words: Sequence[str]) -> int:
    """The status of ``bisect-step``: git would take that of wrong usage or of a traceback for a bad commit."""
    try:
        return _status(words)
    except SystemExit as end:
        return EXIT_ABORT if end.code else 0
    except Exception:  # noqa: BLE001 whatever it is, it says nothing of the commit
        traceback.print_exc()
        return EXIT_ABORT


def _status(words: Sequence[str]) -> int:
    parsed = parse(words)
    _open_output()
    try:
        status = _execute(parsed)
        _flush()
    except BrokenPipeError:  # gpuperf explain ... | head
        _write_no_more()
        return EXIT_PIPE_CLOSED
    except Unwritten as problem:  # gpuperf report > /dev/full
        _write_no_more()
        _complain(f"gpuperf {parsed.command}: {problem}")
        return EXIT_ABORT if parsed.command == "bisect-step" else 1
    return status


def _execute(parsed: argparse.Namespace) -> int:
    """Import the one module that the command needs and let it do its work."""
    module = importlib.import_module(f"pytest_gpuperf.cli.{module_of(parsed.command)}")
    try:
        status: int = module.execute(parsed, _write)
    except BrokenPipeError:  # an OSError, and no problem of the command
        raise
    except module.PROBLEMS as problem:
        _complain(f"gpuperf {parsed.command}: {problem}")
        return PROBLEM_STATUS.get(parsed.command, 1)
    return status


def module_of(command: str) -> str:
    return MODULES.get(command, f"{command}_command")


def _open_output() -> None:
    """Let all that is printed be taken: in the place of a character that the encoding lacks stands its number."""
    if sys.stdout is None:  # gpuperf doctor >&-
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    elif isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _write(text: str) -> object:
    """Print text whose names and words others may have had a hand in.  Raises ``BrokenPipeError`` and ``Unwritten``."""
    try:
        return sys.stdout.write(harmless(text))
    except OSError as problem:
        raise _told(problem) from problem


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as problem:
        raise _told(problem) from problem


def _told(problem: OSError) -> Exception:
    why = problem.strerror or problem
    return problem if isinstance(problem, BrokenPipeError) else Unwritten(f"its output cannot be written ({why})")


def _write_no_more() -> None:
    """Let what is still to be printed go nowhere: the interpreter flushes once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(harmless(text) + "\n")


if __name__ == "__main__":
    sys.exit(main())
