"""How much of the plugin one changed kernel's slow test goes through: a reader of the code has as much to read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from suite_under_test import Suite

MOST_MODULES, MOST_UNCHANGED = 107, 73
"""What they are, of a changed kernel and of an unchanged one: lower them with each module less."""
COUNTING = """

import json, pathlib
import pytest_gpuperf

PLUGIN = str(pathlib.Path(pytest_gpuperf.__file__).parent)
entered = {}

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PLUGIN) and code.co_name != "<module>":
        entered.setdefault(code.co_filename[len(PLUGIN) + 1 :], set()).add((code.co_name, code.co_firstlineno))

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    sys.setprofile(note)
    try:
        return (yield)
    finally:
        sys.setprofile(None)

def pytest_unconfigure(config):
    if not confirms(config):
        functions = sum(map(len, entered.values()))
        pathlib.Path("entered.json").write_text(json.dumps({"modules": sorted(entered), "functions": functions}))
"""
"""Counts modules of which a function was called in a test, its setup, its teardown and its reports included."""


def modules_entered(suite: Suite, **outcomes: int) -> list[str]:
    """Of the run of one kernel's test, in the process that gates."""
    suite.append("conftest.py", COUNTING)
    suite.run("--gpuperf", "-k", "1024").assert_outcomes(**outcomes)
    found = json.loads((suite.path / "entered.json").read_text())
    print(f"{len(found['modules'])} modules, {found['functions']} functions: {' '.join(found['modules'])}")
    return list(found["modules"])


@pytest.mark.parametrize(
    ("steps", "most", "entered"),
    [(120, MOST_MODULES, {"judge/decision.py", "timing/compare.py"}), (100, MOST_UNCHANGED, {"session/judge_test.py"})],
    ids=["changed", "unchanged"],
)
def test_slow_test_of_a_kernel_enters_few_modules(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, steps: int, most: int, entered: set[str]
) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "nothing compiled before"))
    recorded.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")
    modules = modules_entered(recorded, **{"failed" if steps > 100 else "passed": 1})
    assert entered <= set(modules)
    assert len(modules) <= most
