"""What the child processes of a run have in common: how they are run and ended, their tests, errors, progress.

SIGTERM ends a run as Ctrl-C does: children first, then the run reports and gives locks back.  CI services and
schedulers send it before they kill.  The command line of a child is in ``command``.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.model.task import ChildTask, ProfileTask, RevisionTask
from pytest_gpuperf.process.command import child_command

PARENT_VARIABLE = "GPUPERF_PARENT"
"""Names the end of a pipe whose other end the parent holds: it closes when the parent is gone, however it went."""
LOG_LINES = 25
"""Last lines of a child's output that a message quotes."""
_PROGRESS = re.compile(r"\[ *\d+%\]$")
"""How a line of pytest's progress ends, which begins with an E as well if a test's set-up failed."""


class RunningChild:
    """A child in a session of its own; it is ended with all that it started, at the latest with this process."""

    def __init__(
        self, command: Sequence[str], cwd: Path, log: Path, environ: Mapping[str, str], keep: Sequence[int] = ()
    ) -> None:
        """``keep``: file descriptors that it is to have, too.  Raises ``OSError`` if it cannot be started."""
        theirs, self._ours = os.pipe()
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    env={**environ, PARENT_VARIABLE: str(theirs)}, start_new_session=True, pass_fds=(theirs, *keep),
                )  # fmt: skip
        except BaseException:
            os.close(self._ours)  # a child that was started all the same ends by that
            raise
        finally:
            os.close(theirs)

    def waited(self, patience_s: float) -> int | None:
        """Its exit status; None if it goes on for so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(patience_s)
        return None

    def ask_to_end(self) -> None:
        """Send it SIGTERM, by which a run ends what it started and gives back its folders; ``end`` waits for that."""
        self._process.terminate()

    def end(self, patience_s: float = 0.0) -> None:
        """Wait for its end, and bring that about if it does not come; end what it has started in any case."""
        self.waited(patience_s)
        with contextlib.suppress(ProcessLookupError):  # all of them have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)


def run_task(
    config: pytest.Config, task: ChildTask, folder: Path, log: Path, limit_s: float, extra: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> int | None:  # fmt: skip
    """Exit status of a child that has done this task; None if it was ended for not being done in time.

    ``folder`` is for its files, ``log`` for its output, ``extra`` are more flags for it.
    Raises ``OSError`` if it cannot be started.
    """
    command = [*child_command(config, task, folder), *extra]
    child = RunningChild(command, config.invocation_params.dir, log, os.environ if environ is None else environ)
    try:
        return child.waited(limit_s)
    finally:
        child.end()


def answer_signals(handler: Callable[[int, FrameType | None], NoReturn], *numbers: int) -> Callable[[], None]:
    """Let ``handler`` answer these signals, but those that somebody has a handler of their own for.

    Returns a function that gives them back.  Does nothing in another thread than the main one.
    """
    alone = threading.current_thread() is threading.main_thread()
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in numbers} if alone else {}
    usual = {number: one for number, one in handlers.items() if one in (signal.SIG_DFL, signal.default_int_handler)}
    for number in usual:
        signal.signal(number, handler)

    def give_back() -> None:
        for number, one in usual.items():
            signal.signal(number, one)

    return give_back


def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """Take a signal for Ctrl-C, once."""
    signal.signal(number, signal.SIG_IGN)  # the end takes a moment, and a second one would cut it short
    raise KeyboardInterrupt(signal.Signals(number).name)


def end_with_parent() -> None:
    """In a child: end it, and what it started, as soon as its parent is gone.  Does nothing without a parent's pipe."""
    pipe = os.environ.pop(PARENT_VARIABLE, "")
    if pipe.isdigit():
        threading.Thread(target=_wait_for_the_end_of, args=(int(pipe),), daemon=True).start()


def _wait_for_the_end_of(pipe: int) -> None:
    with contextlib.suppress(OSError):  # closed on the way here, by a launcher between the two
        if os.read(pipe, 1) == b"" and os.getsid(0) == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)


def select(config: pytest.Config, items: list[pytest.Item], task: ChildTask) -> None:
    """Keep the tests that the task names, and tell pytest which are left out.

    Where only counters are taken, tests without ``gpuperf`` have nothing to run for.
    """
    fixtures = {"gpuperf"} if isinstance(task, ProfileTask) else set[str]()
    takes = task.takes if isinstance(task, RevisionTask) else set(task.nodes).__contains__
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        fits = takes(item.nodeid) and fixtures <= set(getattr(item, "fixturenames", ()))
        (kept if fits else dropped).append(item)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def log_lines(log: Path) -> list[str]:
    """What a child printed; nothing if it was never started."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []


def errors_in(log: Iterable[str]) -> list[str]:
    """What pytest gives as errors in the lines that it prints, in their order: those that begin with ``E``."""
    return [line[1:].strip() for line in log if line.startswith("E ") and not _PROGRESS.search(line)]


def progress_of(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line on the terminal, if there is one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def show(text: str) -> None:
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(harmless(f"gpuperf: {text}"))

    return show
