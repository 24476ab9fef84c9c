"""How a run may be ended, by SIGTERM as by Ctrl-C; and what of a child's words its parent repeats."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from pytest_gpuperf.process.children import answer_signals, errors_in, interrupt


@pytest.fixture
def handler() -> Iterator[None]:
    """That of SIGTERM is as it was afterwards."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler")
def test_sigterm_is_an_interrupt_once_while_the_run_lasts() -> None:
    give_back = answer_signals(interrupt, signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt, match=r"^SIGTERM$"):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # a second one would cut the end short
    give_back()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("handler")
def test_a_handler_of_somebody_elses_stays() -> None:
    def own(number: int, frame: object) -> None:
        """Of another plugin."""

    signal.signal(signal.SIGTERM, own)
    give_back = answer_signals(interrupt, signal.SIGTERM)
    give_back()
    assert signal.getsignal(signal.SIGTERM) == own
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    thread = threading.Thread(target=answer_signals, args=(interrupt, signal.SIGTERM))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_line_of_progress_is_no_error() -> None:
    """That of pytest 8.0 after a set-up that failed begins as its errors do."""
    log = [f"E{' ' * 72}[100%]", ".E  [ 50%]", "    def pytest_runtest_setup(item):"]
    log += [">       raise RuntimeError('no licence')", "E       RuntimeError: no licence", "E       of 100%"]
    assert errors_in(log) == ["RuntimeError: no licence", "of 100%"]
