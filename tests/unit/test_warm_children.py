"""The program that tests start their children with, and the server behind it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm_python

from pytest_gpuperf.model.task import AS_COMMAND
from pytest_gpuperf.revision.imports import BOOTSTRAP, bootstrap_arguments


@pytest.fixture(scope="module")
def program() -> Iterator[str]:
    """With a server of its own: that of the session starts the children of all tests that follow."""
    with warm_python.start() as one:
        yield one


@pytest.mark.parametrize("sent", [b"", (1000).to_bytes(8, "big") + b"only a part"])
def test_a_client_that_ends_as_it_asks_ends_no_other(program: str, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(Path(program).parent / "socket"))
        client.sendall(sent)
    done = subprocess.run([program, "-m", "pytest", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr or done.stdout) == (0, f"pytest {pytest.__version__}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["-mpytest"], ["-m", "pytest"], ["-c", AS_COMMAND],
        ["-c", BOOTSTRAP, *bootstrap_arguments((), Path("/nowhere"), as_module=False)],
    ],
)  # fmt: skip
def test_all_ways_to_start_pytest_fork(pytester: pytest.Pytester, words: list[str]) -> None:
    pytester.makepyfile("import sys\ndef test_forked():\n    assert 'pytest_gpuperf.workload.gate' in sys.modules")
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


@pytest.mark.parametrize("leads", [False, True])
def test_a_forked_process_has_its_files_and_its_session(tmp_path: Path, leads: bool) -> None:
    (tmp_path / "writing.py").write_text(
        "import os, sys\nos.write(int(sys.argv[1]), b'text')\nprint(os.getsid(0) == os.getpid())\n"
    )
    with (tmp_path / "file").open("w+b") as file:
        done = subprocess.run(
            [sys.executable, "-m", "writing", str(file.fileno())], cwd=tmp_path, capture_output=True, text=True,
            check=False, pass_fds=[file.fileno()], start_new_session=leads,
        )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{leads}\n", "")
    assert (tmp_path / "file").read_bytes() == b"text"
