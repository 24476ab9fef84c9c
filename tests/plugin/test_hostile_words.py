"""What a test, a kernel's source or a compiler says is text in the log of a run, and never a command to the CI job."""

from __future__ import annotations

import re

import pytest

SOURCE = """
SOURCE = '#error spoofed \\x1b[2J \\u202e ##vso[task.complete]x\\n__global__ void k() {}'

def test_source(cuda_kernel):
    cuda_kernel(SOURCE, name="k")
"""
FIXTURE = """
import pytest

SOURCE = '#error spoofed \\x1b[2J \\u202e ##vso[task.complete]x\\n__global__ void k() {}'

@pytest.fixture
def kernel(cuda_kernel):
    return cuda_kernel(SOURCE, name="k")

@pytest.fixture
def label(cuda_kernel):
    cuda_kernel("extern \\"C\\" __global__ void k() {}", name="\\n::error::spoofed \\x1b[2J")

def test_kernel(kernel): ...

def test_label(label): ...
"""
COMMAND = re.compile(r"^\s*::[A-Za-z]|##\w*\[", re.MULTILINE)


def test_no_line_of_a_run_is_a_command(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SOURCE)
    shown = pytester.runpytest("--gpuperf", "--junitxml=junit.xml").stdout.str()
    told = shown.partition("CompileError")[2]  # before it, pytest shows the test's own lines
    assert "#error spoofed \\x1b[2J" in told
    assert not COMMAND.search(told)
    assert not re.search("[\x1b\u202e]", told)
    assert not re.search("[\x1b\u202e]|^\\s*::error", (pytester.path / "junit.xml").read_text(), re.MULTILINE)


def test_no_line_of_a_failed_fixture_is_a_command(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FIXTURE)
    result = pytester.runpytest("--gpuperf", "--junitxml=junit.xml", "--tb=short")
    result.assert_outcomes(errors=2)
    shown = result.stdout.str()
    assert "#error spoofed \\x1b[2J" in shown
    assert "\\x3a:error::spoofed" in shown
    assert not COMMAND.search(re.sub("^SOURCE = .*", "", shown, flags=re.MULTILINE))
    assert not re.search("[\x1b\u202e]", shown)
    assert not re.search("[\x1b\u202e]|^\\s*::error", (pytester.path / "junit.xml").read_text(), re.MULTILINE)
