"""What the child processes of a run have in common: how they are run and ended, their tests, errors, progress.

Their command line is in ``child_command``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.child_command import child_command
from pytest_gpuperf.context.opponent_loop import OpponentLoop
from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.model.task import ChildTask, OpponentTask, ProfileTask, RevisionTask

PARENT_VARIABLE = "GPUPERF_PARENT"
"""Names the end of a pipe whose other end the parent holds: it closes when the parent is gone, however it went."""
PR_SET_PDEATHSIG = 1
"""Of ``linux/prctl.h``."""
PARENT: pytest.StashKey[str] = pytest.StashKey()
"""What that variable said; it is for this process alone, and not for what it starts."""
_PROGRESS = re.compile(r"\[ *\d+%\]$")
"""How a line of pytest's progress ends, which begins with an E as well if a test's set-up failed."""


def run_task(
    config: pytest.Config, task: ChildTask, folder: Path, log: Path, limit_s: float, extra: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> int | None:  # fmt: skip
    """Run a child for this task, as ``run_child`` says; ``folder`` is for its files, ``extra`` are more flags for it.

    Where pytest does not know a flag that it knows here, a conftest of another folder declares it: then the child
    collects all that this run does.
    """
    cwd, status = config.invocation_params.dir, None
    for whole in (False, True):
        command = [*child_command(config, task, folder, whole=whole), *extra]
        status = run_child(command, cwd, log, limit_s, environ)
        if status != pytest.ExitCode.USAGE_ERROR:
            break
    return status


def run_child(
    command: Sequence[str], cwd: Path, log: Path, limit_s: float, environ: Mapping[str, str] | None = None
) -> int | None:
    """Run a child with its output in ``log``: its exit status, or None if it was ended for not being done in time.

    It has a session of its own, and is ended with all that it started: in time, by an interrupt here, or, by
    ``end_with_parent``, if this process dies.  Raises ``OSError`` if it cannot be started.
    """
    child = RunningChild(command, cwd, log, os.environ if environ is None else environ)
    try:
        return child.waited(limit_s)
    finally:
        child.end()


class RunningChild:
    """A child that goes on beside this process; it is ended with all that it started, at the latest with this one."""

    def __init__(
        self, command: Sequence[str], cwd: Path, log: Path, environ: Mapping[str, str], keep: Sequence[int] = ()
    ):
        """``keep``: file descriptors that it is to have, too.  Raises ``OSError`` if it cannot be started.

        An interrupt that comes while it is started ends it.
        """
        theirs, self._ours = os.pipe()
        started = False
        try:
            with log.open("wb") as output, undisturbed():
                self._process = subprocess.Popen(
                    command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    env={**environ, PARENT_VARIABLE: str(theirs)}, start_new_session=True, pass_fds=(theirs, *keep),
                )  # fmt: skip
                started = True
        except BaseException:
            if started:
                self.end()
            else:
                os.close(self._ours)
            raise
        finally:
            os.close(theirs)

    @property
    def pid(self) -> int:
        return self._process.pid

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


def keep_parent(config: pytest.Config) -> None:
    """Before this process's program is started anew in its place: it is to end with the same parent."""
    os.environ[PARENT_VARIABLE] = config.stash.get(PARENT, "")


def end_with_parent(config: pytest.Config) -> None:
    """In a child: end it, and what it started, as soon as its parent is gone.  Does nothing without a parent's pipe."""
    theirs = config.stash[PARENT] = os.environ.pop(PARENT_VARIABLE, "")
    if theirs.isdigit():
        _die_with_parent()
        threading.Thread(target=_wait_for_the_end_of, args=(int(theirs),), daemon=True).start()


def _die_with_parent() -> None:
    """Let Linux end this process with its parent, even in the middle of a call that holds Python's lock."""
    with contextlib.suppress(OSError, AttributeError, ValueError):  # not on other systems; the pipe is there too
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def serve_if_opponent(config: pytest.Config, task: ChildTask | None) -> None:
    """Let a process that stands for another revision run tests when it is told to, instead of all of them."""
    if isinstance(task, OpponentTask):
        loop = OpponentLoop(task)
        stash.run_of(config).link = loop.link
        config.pluginmanager.register(loop, "gpuperf-opponent")


def _wait_for_the_end_of(pipe: int) -> None:
    with contextlib.suppress(OSError):  # closed on the way here, by a launcher between the two
        if os.read(pipe, 1) == b"" and os.getsid(0) == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)


def log_lines(log: Path) -> list[str]:
    """What a child printed; nothing if it was never started."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []


def select(config: pytest.Config, items: list[pytest.Item], task: ChildTask) -> None:
    """Keep the tests that the task names, and tell pytest which are left out.

    Where only counters are taken, tests without ``gpuperf`` have nothing to run for.
    """
    if isinstance(task, OpponentTask):  # all of its files' tests: it is told which to run
        return
    nodes, fixtures = set(task.nodes), {"gpuperf"} if isinstance(task, ProfileTask) else set()
    takes = task.takes if isinstance(task, RevisionTask) else nodes.__contains__
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        fits = takes(item.nodeid) and fixtures <= set(getattr(item, "fixturenames", ()))
        (kept if fits else dropped).append(item)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


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
            reporter.write_line(harmless(f"gpuperf: {text}"))

    return show


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end a run come after this block.

    Blocking them would not do: the system gives them to another thread then, and Python lets this one handle them.
    """
    came: list[int] = []
    before: dict[int, Callable[[int, FrameType | None], Any] | int] = {}

    def hold_back(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None and threading.current_thread() is threading.main_thread():
                before[number] = handler
                signal.signal(number, hold_back)
        yield
    finally:
        for held, handler in before.items():
            signal.signal(held, handler)
        for late in came:
            signal.raise_signal(late)
