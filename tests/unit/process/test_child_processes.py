"""What a child process of a run says, as far as its parent repeats it; and that none outlives an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_gpuperf.process.children import RunningChild, errors_in


def test_a_line_of_progress_is_no_error() -> None:
    """That of pytest 8.0 after a set-up that failed begins as its errors do."""
    log = [
        "E                                                                        [100%]",
        ".E  [ 50%]",
        "    def pytest_runtest_setup(item):",
        ">       raise RuntimeError('no licence')",
        "E       RuntimeError: no licence",
        "E       of 100%",
    ]
    assert errors_in(log) == ["RuntimeError: no licence", "of 100%"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_it_is_started_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[int] = []
    popen = subprocess.Popen

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        child = popen(*arguments, **options)  # type: ignore[call-overload]
        started.append(child.pid)
        signal.raise_signal(number)
        return child  # type: ignore[no-any-return]

    def raise_interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("subprocess.Popen", interrupted)
    before = signal.signal(number, raise_interrupt)
    descriptors = set(Path("/proc/self/fd").iterdir())
    try:
        with pytest.raises(KeyboardInterrupt):
            RunningChild([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, tmp_path / "log", os.environ)
    finally:
        signal.signal(number, before)
    (child,) = started
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert set(Path("/proc/self/fd").iterdir()) == descriptors
