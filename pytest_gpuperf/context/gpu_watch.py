"""A thread that notices when the GPU does not come back: an endless kernel would hold the whole run.

It looks at the main thread once a second.  Where that has not moved and nothing was launched or answered for as long
as the limit, the GPU is asked, and only then: a query while a graph is captured would void the capture.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from pytest_gpuperf.device.interface import Device

POLL_S = 1.0
ANSWER_S = 5.0
"""For the question whether the GPU is idle; a driver that another thread holds up does not answer."""


class GpuWatch:
    """Of one process's GPU, while a test runs."""

    def __init__(
        self,
        opened: Callable[[], Device | None],
        limit_s: Callable[[], float],
        when_endless: Callable[[Device, float], None],
    ) -> None:
        """``opened`` is the GPU if the process has used one, ``limit_s`` the seconds for which a call may wait for it.

        ``when_endless`` is called in this thread, with the seconds that were waited.
        """
        self._opened = opened
        self._limit_s = limit_s
        self._when_endless = when_endless
        self._main = threading.main_thread().ident
        self._running = threading.Event()
        self._seen: tuple[object, ...] = ()
        self._since = 0.0
        threading.Thread(target=self._look, daemon=True, name="gpuperf-watch").start()

    def begin(self) -> None:
        """A test begins."""
        self._seen = ()
        self._running.set()

    def end(self) -> None:
        """No test runs."""
        self._running.clear()

    def _look(self) -> None:
        while True:
            self._running.wait()
            time.sleep(min(POLL_S, self._limit_s() / 4))
            device = self._opened()
            if device is not None:
                self._look_at(device, time.monotonic())

    def _look_at(self, device: Device, now: float) -> None:
        place = self._place(device)
        if place != self._seen:
            self._seen, self._since = place, now
        elif self._running.is_set() and now - self._since >= self._limit_s():
            if not _is_idle(device):
                self._when_endless(device, now - self._since)
            self._seen = ()

    def _place(self, device: Device) -> tuple[object, ...]:
        """Where the main thread is, and how far the GPU has come."""
        frame = sys._current_frames().get(self._main or 0)
        return (id(frame), frame.f_lasti if frame is not None else 0, device.launches.steps)


def _is_idle(device: Device) -> bool:
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(device.is_idle()), daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    return bool(answers and answers[0])
