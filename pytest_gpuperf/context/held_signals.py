"""What is done whole, whatever signal comes meanwhile: a folder made and put down for removal, a child started."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int
"""Of a signal."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end a run come after this block.

    Blocking them would not do: the system gives them to another thread then, and Python lets this one handle them.
    """
    came: list[int] = []
    before: dict[int, Handler] = {}

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
