"""The program that tests start their children with, and the server behind it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm_python


@pytest.fixture(scope="module")
def program() -> Iterator[str]:
    """With a server of its own: that of the session starts the children of all tests that follow."""
    with warm_python.start() as one:
        yield one


@pytest.mark.parametrize("sent", [b"", (1000).to_bytes(8, "big"), (1000).to_bytes(8, "big") + b"only a part"])
def test_a_client_that_is_ended_as_it_asks_ends_no_other(program: str, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(Path(program).parent / "socket"))
        client.sendall(sent)
    done = subprocess.run([program, "-m", "pytest", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr or done.stdout) == (0, f"pytest {pytest.__version__}\n")


@pytest.mark.parametrize("words", [["-mpytest"], ["-m", "pytest"]])
def test_both_ways_to_start_pytest_fork(pytester: pytest.Pytester, words: list[str]) -> None:
    pytester.makepyfile("import sys\ndef test_forked():\n    assert 'pytest_gpuperf.workload.gate_time' in sys.modules")
    command = [sys.executable, *words, "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
