"""What a child process of a run says, as far as its parent repeats it."""

from __future__ import annotations

from pytest_gpuperf.process.children import errors_in


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
