"""One update at a time, and each file is the old one or the new one: whatever fails, waits or is killed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from baseline_samples import NVRTC, keys_of, make_key, make_static

from pytest_gpuperf.baselines import writing
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.store import BaselineStore, Update

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
MODULES = ("test_a.py", "test_b.py")
LAST = 400
"""More system calls than an update makes."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


def update(number: int, name: str = "") -> Update:
    """Of ten workloads of each module, with a cubin of its own."""
    keys = [make_key(f"test_{name}", str(i), module) for i in range(10) for module in MODULES]
    static = {("sm_90", NVRTC, key): make_static(number) for key in keys}
    return Update(static=static, cubins=[f"{name} {number}".encode()])


def numbers(root: Path) -> list[set[int]]:
    """What each module's file has; every file can be read, and git is shown no other."""
    store = BaselineStore(root)
    return [{one.profile.registers for one in store.load("sm_90", module).values()} for module in MODULES]


@needs_fork
def test_death_before_any_system_call_leaves_every_file_whole(root: Path) -> None:
    BaselineStore(root).write(update(0))
    between = 0
    for point in range(1, LAST):
        child = os.fork()
        if child == 0:
            _die_before(point)
            BaselineStore(root).write(update(point))
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        found = numbers(root)
        assert all(len(one) == 1 for one in found), "a file has the records of one update"
        between += found[0] != found[1]
        stored = stored_cubins(root).values()
        assert all(hashlib.sha256(f" {number}".encode()).hexdigest() in stored for one in found for number in one)
        if status == 0:
            break
    assert status == 0
    assert point > 15
    assert found == [{point}, {point}]
    assert between <= 2, "all are written before the first is moved"
    assert not list((root / ".work").glob("*.part"))


def _die_before(point: int) -> None:
    calls = iter(range(1, 10_000))

    def dying(real: object) -> object:
        def call(*arguments: object, **named: object) -> object:
            if next(calls) == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)  # type: ignore[operator]

        return call

    os.fsync, os.open = dying(os.fsync), dying(os.open)  # type: ignore[assignment]
    for name in ("open", "replace", "mkdir", "unlink", "write_bytes"):
        setattr(Path, name, dying(getattr(Path, name)))


WRITER = """
import pathlib, sys
from test_writing import update
from pytest_gpuperf.baselines.store import BaselineStore
for number in range(10):
    BaselineStore(pathlib.Path(sys.argv[1])).write(update(number, sys.argv[2]))
"""


def test_updates_at_once_lose_nothing(root: Path) -> None:
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])}
    names = ("ann", "bob", "cyd")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(root), name], env=environment) for name in names]
    assert [process.wait() for process in running] == [0] * len(names)
    assert len(keys_of(BaselineStore(root), "sm_90")) == len(names) * 20
    assert numbers(root) == [{9}, {9}]
    assert len(stored_cubins(root)) == len(names) * 10


def test_whoever_waits_gives_up_in_the_end(root: Path) -> None:
    refused = pytest.raises(BaselineError, match=r"more than 0\.2 s\. Nothing was written")
    with writing.exclusive(root), refused, writing.exclusive(root, timeout_s=0.2):
        pass
    with writing.exclusive(root):
        subprocess.run(["git", "init", "-q", root.parent], check=True)
        seen = ["git", "status", "--porcelain", "-uall"]
        assert subprocess.run(seen, cwd=root.parent, capture_output=True, check=True).stdout == b"", "git sees no lock"
