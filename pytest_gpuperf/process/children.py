"""The child processes of a run: their command line, how they are run and ended, their tests, errors, progress.

The command line is that of the run itself, for other tests and with files of its own.  SIGTERM ends a run as Ctrl-C
does: children first, then the run reports and gives locks back.  CI services and schedulers send it before they kill.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.formatting import escape_ci_commands
from pytest_gpuperf.model.task import AS_COMMAND, ChildTask, ConfirmTask, ProfileTask, flag_of

PARENT_VARIABLE = "GPUPERF_PARENT"
"""Names the end of a pipe whose other end the parent holds: it closes when the parent ends, in whatever way."""
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

    def waited(self, timeout_s: float) -> int | None:
        """Its exit status; None if it goes on for so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def ask_to_end(self) -> None:
        """Send it SIGTERM, by which a run ends what it started and gives back its folders; ``end`` waits for that."""
        self._process.terminate()

    def end(self, timeout_s: float = 0.0) -> None:
        """Wait for its end, and bring that about if it does not come; end what it has started in any case."""
        self.waited(timeout_s)
        with contextlib.suppress(ProcessLookupError):  # all of them have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)


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
    """In a child: end it, and what it started, as soon as its parent ends.  Does nothing without a parent's pipe."""
    pipe = os.environ.pop(PARENT_VARIABLE, "")
    if pipe.isdigit():
        threading.Thread(target=_wait_for_the_end_of, args=(int(pipe),), daemon=True).start()


def _wait_for_the_end_of(pipe: int) -> None:
    with contextlib.suppress(OSError):  # closed on the way here, by a launcher between the two
        if os.read(pipe, 1) == b"" and os.getsid(0) == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)


def select(config: pytest.Config, items: list[pytest.Item], task: ChildTask) -> None:
    """Keep the tests that a process under ncu takes counters of, and tell pytest which are left out.

    Other processes get their tests by messages.
    """
    if not isinstance(task, ProfileTask):
        return
    nodes = set(task.nodes)
    kept = [one for one in items if one.nodeid in nodes and "gpuperf" in getattr(one, "fixturenames", ())]
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept


def log_lines(log: Path) -> list[str]:
    """The output of a child; empty if it was never started."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []


def errors_in(log: Iterable[str]) -> list[str]:
    """The errors in pytest's output, in order: lines that begin with ``E``."""
    return [line[1:].strip() for line in log if line.startswith("E ") and not _PROGRESS.search(line)]


def show_progress(config: pytest.Config, text: str) -> None:
    """Print a line on the terminal, if there is one."""
    if (reporter := config.pluginmanager.get_plugin("terminalreporter")) is not None:
        reporter.ensure_newline()
        reporter.write_line(escape_ci_commands(f"gpuperf: {text}"))


# --- the command line ---------------------------------------------------------------------------------

WRITES = (
    ("xmlpath", "--junit-xml"), ("log_file", "--log-file"), ("basetemp", "--basetemp"), ("htmlpath", "--html"),
    ("report_log", "--report-log"), ("json_report_file", "--json-report-file"), ("allure_report_dir", "--alluredir"),
)  # fmt: skip
"""Options of pytest and of well-known plugins that name what it writes, and their flags."""
NOT_FOR_CHILDREN = ("--pdb", "--trace", "--debug", "--pastebin")
"""Flags that need a terminal, write files or upload, and that no later flag turns off."""


def child_command(config: pytest.Config, task: ConfirmTask | ProfileTask, nodes: Iterable[str]) -> list[str]:
    """The command line of this run, for the modules of these tests, without touching the run's files.

    Every option of the user's, of whatever plugin or conftest, reaches the child; what follows them takes back what is
    not for it.  Leaves the task in its folder.
    """
    modules = dict.fromkeys(node.partition("::")[0] for node in nodes)
    baselines = config.stash[stash.OPTIONS].baselines  # or the evidence of a revision so far
    python = ("-m", "pytest") if is_module(config) else ("-c", AS_COMMAND)
    return [
        sys.executable, *python, *given_options(config),
        *own_options(config, task.folder, config.rootpath, config.inipath), f"--gpuperf-baselines={baselines}",
        flag_of(task), *(str(config.rootpath / module) for module in modules),
    ]  # fmt: skip


def is_module(config: pytest.Config) -> bool:
    """Whether pytest was started by ``python -m pytest``, which has the current folder on its path."""
    program = getattr(config, "workerinput", {}).get("mainargv", sys.argv)[0]
    return Path(program).name == "__main__.py"


def given_options(config: pytest.Config) -> Iterator[str]:
    """The run's options, as they were written, that are for its children too."""
    places = Counter(given_places(config))
    for word in map(str, config.invocation_params.args):
        if places[word]:
            places[word] -= 1
        elif word.partition("=")[0] not in NOT_FOR_CHILDREN:
            yield word


def given_places(config: pytest.Config) -> list[str]:
    """Files, folders and tests that the run was given, as they were written; a process has its own ini file's."""
    by_hand = [*map(str, config.invocation_params.args), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    usual = set(config.getini("addopts")).difference(by_hand)
    return [place for place in map(str, config.getoption("file_or_dir") or ()) if place not in usual]


def own_options(config: pytest.Config, folder: Path, root: Path, ini: Path | None) -> Iterator[str]:
    """Flags that replace options not meant for a child: its files go to ``folder``, pytest's root is ``root``."""
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
