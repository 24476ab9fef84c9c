"""The program that tests start their children with, and the server behind it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm_python

from pytest_gpuperf.model.safe_python import AS_COMMAND, FOLDER_LAST


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


@pytest.mark.parametrize("words", [["-mpytest"], ["-m", "pytest"], ["-c", AS_COMMAND], ["-c", FOLDER_LAST]])
def test_all_ways_to_start_pytest_fork(pytester: pytest.Pytester, words: list[str]) -> None:
    pytester.makepyfile("import sys\ndef test_forked():\n    assert 'pytest_gpuperf.workload.gate_time' in sys.modules")
    command = [sys.executable, *words, "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("last", "status", "said"),
    [
        ("", 0, ""), ("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('why')", 1, "why\n"),
        ("raise KeyError('why')", 1, "KeyError: 'why'\n"), ("os.kill(os.getpid(), 15)", -15, ""),
    ],
)  # fmt: skip
def test_a_forked_process_ends_as_any_other(tmp_path: Path, last: str, status: int, said: str) -> None:
    begun = "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n" if status >= 0 else ""
    (tmp_path / "ending.py").write_text(
        f"import atexit, os, sys, threading, time\natexit.register(print, 'at exit')\n{begun}{last}"
    )
    done = subprocess.run([sys.executable, "-m", "ending"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[-len(said) :] if said else done.stderr) == (status, said)
    assert done.stdout == ("thread\nat exit\n" if begun else "")
