"""``os._exit(0)`` in a test would end pytest before any verdict is told, and look like a green run to whoever waits.

Nothing in Python runs after it, so it is the function itself that says what it does while a run lasts.  Other processes
are left alone: forked ones end by it as a rule, and pytest-xdist calls a worker that ended so a crashed one.
"""

from __future__ import annotations

import contextlib
import os
from typing import NoReturn

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.session.taken_back import last_word


def note_early_exit(config: pytest.Config) -> None:
    """Let ``os._exit(0)`` in this process end with the status of the verdicts, until the run is over."""
    leave, own = os._exit, os.getpid()

    def ended(status: int) -> NoReturn:
        if status == 0 and os.getpid() == own:
            told = config.stash.get(stash.STATUS, None)
            with contextlib.suppress(Exception):
                config._ensure_unconfigure()  # folders and locks are given back, and what captures the output
            status = last_word(told)
        leave(status)

    def give_back() -> None:
        if os._exit is ended:
            os._exit = leave

    os._exit = ended
    config.add_cleanup(give_back)
