"""SIGTERM ends a run as Ctrl-C does: children first, then what was found is reported and locks are given back.

CI services and schedulers send it before they kill.  Python's own answer would be to vanish on the spot.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import pytest

ENDING = (signal.SIGINT, signal.SIGTERM)


def end_in_order(config: pytest.Config) -> None:
    """Take SIGTERM for a keyboard interrupt while this run lasts, unless somebody has a handler of their own for it."""
    if _is_main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
        config.add_cleanup(_give_back)


@contextlib.contextmanager
def command_in_order() -> Iterator[None]:
    """Ctrl-C and SIGTERM end a command that has children and folders by ``SystemExit``, with the status of a shell."""
    before = {number: signal.getsignal(number) for number in ENDING} if _is_main_thread() else {}
    usual = {number: one for number, one in before.items() if one in (signal.SIG_DFL, signal.default_int_handler)}
    try:
        for number in usual:
            signal.signal(number, _exit)
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end a run come after this block.

    Blocking them would not do: the system gives them to another thread then, and Python lets this one handle them.
    """
    came: list[int] = []
    before: dict[int, Callable[[int, FrameType | None], Any] | int] = {}
    try:
        for number in ENDING:
            handler = signal.getsignal(number)
            if handler is not None and _is_main_thread():
                before[number] = handler
                signal.signal(number, lambda late, _frame: came.append(late))
        yield
    finally:
        for held, handler in before.items():
            signal.signal(held, handler)
        for late in came:
            signal.raise_signal(late)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end takes a moment, and a second one would cut it short
    raise KeyboardInterrupt("SIGTERM")


def _give_back() -> None:
    if signal.getsignal(signal.SIGTERM) in (_interrupt, signal.SIG_IGN):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
