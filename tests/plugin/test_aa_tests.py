"""A/A tests: launches that a gated run compares with themselves."""

from __future__ import annotations

import random

import pytest

MOVING = """
class Moving(SimulatedGpu):
    \"\"\"Each module that is loaded is 10 % slower than the one before: a launch differs from itself.\"\"\"

    def load(self, binary):
        kernel, self.loaded = super().load(binary), getattr(self, "loaded", 0) + 1
        factor = 0.1 * self.loaded

        def launch(*given):
            before = self.elapsed_ns
            kernel(*given)
            self.elapsed_ns += factor * (self.elapsed_ns - before)

        return launch
"""


@pytest.fixture(autouse=True)
def every_test_is_drawn(monkeypatch):
    monkeypatch.setattr(random, "random", lambda: 0.0)


def test_launch_that_equals_itself_raises_no_warning(recorded):
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    assert "A/A test" not in result.stdout.str()


def test_launch_that_differs_from_itself_warns_and_fails_nothing(recorded):
    recorded.edit("conftest.py", "\ndef work(", f"{MOVING}\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Moving(")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.stdout.fnmatch_lines(["*A/A test: *test_work?1024? ?work? differs from itself, x*look for other work*"])
    result.assert_outcomes(passed=1, warnings=1)
