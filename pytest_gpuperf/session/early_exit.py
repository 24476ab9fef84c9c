"""``os._exit(0)`` in a test would end pytest before any verdict is told, and look like a green run to whoever waits.

So would another program that ``os.execv`` puts in its place.  Nothing in Python runs after them, so it is the functions
themselves that say what they do while a run lasts.  Other processes are left alone: forked ones end by them as a rule,
and pytest-xdist calls a worker that ended so a crashed one.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.session.taken_back import last_word, looks_green


def note_early_exit(config: pytest.Config) -> None:
    """Let ``os._exit(0)`` and ``os.execv`` in this process end with the status of the verdicts, until the run is over.

    Another program takes the place of a run that has told green ones.
    """
    leave, own = os._exit, os.getpid()

    def end() -> int:
        told = config.stash.get(stash.STATUS, None)
        with contextlib.suppress(Exception):
            config._ensure_unconfigure()  # folders and locks are given back, and what captures the output
        return last_word(told)

    def ended(status: int) -> NoReturn:
        leave(end() if looks_green(status) and os.getpid() == own else status)

    def unless_red(replace: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        @functools.wraps(replace)
        def replaced(path: Any, *given: Any) -> NoReturn:
            replaces = isinstance(path, int) or os.access(path, os.X_OK)  # else it raises, and the test goes on
            if replaces and os.getpid() == own and (status := end()):
                leave(status)
            replace(path, *given)

        return replaced

    before = {"_exit": leave, "execv": os.execv, "execve": os.execve}  # which all others of their kind call
    during = {"_exit": ended, "execv": unless_red(os.execv), "execve": unless_red(os.execve)}

    def give_back() -> None:
        for name, function in during.items():
            if getattr(os, name) is function:
                setattr(os, name, before[name])

    for name, function in during.items():
        setattr(os, name, function)
    config.add_cleanup(give_back)
