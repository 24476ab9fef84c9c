"""SIGTERM ends a run as Ctrl-C does: children first, then what was found is told and folders and locks are given back.

CI services and schedulers send it before they kill.  Python's own answer would be to vanish on the spot.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import pytest


def end_in_order(config: pytest.Config) -> None:
    """Take SIGTERM for a keyboard interrupt while this run lasts, unless somebody has a handler of their own for it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    signal.signal(signal.SIGTERM, _interrupt)
    config.add_cleanup(_give_back)


@contextlib.contextmanager
def command_in_order() -> Iterator[None]:
    """Ctrl-C and SIGTERM end a command that has children and folders by ``SystemExit``, with the status of a shell."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    taken = [number for number, handler in before.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]
    try:
        for number in taken:
            signal.signal(number, _exit)
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end takes a moment, and a second one would cut it short
    raise KeyboardInterrupt("SIGTERM")


def _give_back() -> None:
    if signal.getsignal(signal.SIGTERM) in (_interrupt, signal.SIG_IGN):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
