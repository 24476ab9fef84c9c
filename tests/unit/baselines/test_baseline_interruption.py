"""``kill -9`` in the middle of an update leaves old files or new ones, never a mixture."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import H200, NVRTC, make_key, make_static, static_update

from pytest_gpuperf.baselines import working_folder
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore

MOMENTS = 50
LAST = 1000
"""More system calls than an update makes."""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

# Forks one updater per line on stdin, so that the imports are paid once; answers with its process id, then, when it
# has died, with its exit status.  Update n writes n into every workload of both files, with a cubin of its own.  The
# line has the first n and, if not 0, the number of the system call before which the updater kills itself.
UPDATER = """
import hashlib, itertools, os, pathlib, signal, sys
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, make_time
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore

root = pathlib.Path(sys.argv[1])
keys = [make_key(f"test_transpose[{i}]") for i in range(10)]

def die_before(point):
    calls = itertools.count(1)
    def dying(real):
        def call(*args, **kwargs):
            if next(calls) == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)
        return call
    os.fsync, os.open = dying(os.fsync), dying(os.open)
    for name in ("open", "replace", "mkdir", "unlink"):
        setattr(pathlib.Path, name, dying(getattr(pathlib.Path, name)))

def update(store, n):
    cubin = b"cubin %d" % n
    session = make_session(1 + n % 28, id=str(n))
    timer = ("cupti", "graph")[n % 2]
    record = make_time(session, cubin=hashlib.sha256(cubin).hexdigest(), bytes=n, timer=timer)
    store.write(Update(
        static={("sm_90", NVRTC, key): make_static(n) for key in keys},
        time={(H200, key): record for key in keys}, sessions=[session], cubins=[cubin],
    ))

for line in sys.stdin:
    first, point = map(int, line.split())
    child = os.fork()
    if child == 0:
        if point:
            die_before(point)
            update(BaselineStore(root), first)
            os._exit(0)
        for n in itertools.count(first):
            update(BaselineStore(root), n)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@pytest.fixture
def updater(root: Path) -> Iterator[Callable[[int, int], tuple[int, Callable[[], int]]]]:
    """Starts an updater; returns its process id and a function that waits for its exit status."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", UPDATER, str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def start(first: int, point: int) -> tuple[int, Callable[[], int]]:
            print(first, point, file=stdin, flush=True)
            return int(stdout.readline()), lambda: int(stdout.readline())

        yield start
        stdin.close()


def files_are_whole(root: Path) -> int:
    """Asserts that everything in the folder is one update's work; returns the number of cubins in use."""
    store = BaselineStore(root)
    module = make_key().module
    static, timed = store.load("sm_90", module), store.load(H200, module)
    cubins = set()
    if isinstance(static, StaticFile):
        records = [workloads["padded"] for workloads in static.toolchains[NVRTC].values()]
        assert len(records) == 10
        assert len({record.profile.registers for record in records}) == 1
        assert canonical_bytes(static) == (root / "sm_90/example_suite/test_transpose.json").read_bytes()
    if isinstance(timed, TimeFile):
        times = [workloads["padded"] for workloads in timed.tests.values()]
        assert len(times) == 10
        assert len({record.bytes for record in times}) == 1
        assert canonical_bytes(timed) == (root / "nvidia-h200/example_suite/test_transpose.json").read_bytes()
        cubins = {record.cubin for record in times}
    for sha256 in cubins:
        assert store.cubin(sha256).startswith(b"cubin ")
    return len(cubins)


def seconds_of_an_update(updater: Any) -> float:
    """On this machine and its disk, with the start of the process."""
    start = time.perf_counter()
    _, status = updater(1, LAST)
    assert status() == 0
    return time.perf_counter() - start


@needs_fork
def test_kill_9_at_random_moments_leaves_every_file_whole(root: Path, updater: Any) -> None:
    moments = random.Random(2)
    least_s = min(seconds_of_an_update(updater) for _ in range(3))
    shutil.rmtree(root)
    used = 0
    for moment in range(1, 1 + MOMENTS):
        child, status = updater(1 + moment * 1000, 0)
        time.sleep(moments.uniform(0.1, 4.0) * least_s)
        os.kill(child, signal.SIGKILL)
        assert status() == signal.SIGKILL
        used += files_are_whole(root)
    assert used > 0
    BaselineStore(root).write(static_update(make_static(7)))
    assert not any(root.rglob("*.gpuperf-tmp"))
    assert BaselineStore(root).static("sm_90", make_key(), NVRTC).record == make_static(7)


@needs_fork
def test_death_before_any_system_call_of_an_update_leaves_every_file_whole(root: Path, updater: Any) -> None:
    left = 0
    for point in range(1, LAST):
        _, status = updater(point, point)
        died = status()
        files_are_whole(root)
        left += any(root.rglob("*.gpuperf-tmp"))
        if died == 0:
            break
    assert died == 0
    assert point > 15
    assert left >= 3
    assert not any(root.rglob("*.gpuperf-tmp"))


@needs_fork
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_death_before_any_system_call_of_a_first_update_leaves_nothing_that_git_would_take(
    root: Path, updater: Any
) -> None:
    subprocess.run(["git", "init", "-q", root.parent], check=True)
    taken = set()
    for point in range(1, LAST):
        _, status = updater(point, point)
        died = status()
        files_are_whole(root)
        seen = ["git", "status", "--porcelain", "-uall"]
        listed = subprocess.run(seen, cwd=root.parent, capture_output=True, text=True, check=True).stdout
        taken |= set(listed.replace("?? ", "").split())
        if died == 0:
            break
        shutil.rmtree(root, ignore_errors=True)
    assert died == 0
    assert {Path(path).suffix for path in taken} == {".json", ".z"}
    assert not any(working_folder.NAME in Path(path).parts for path in taken)


def test_a_file_that_an_interrupted_write_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    leftover = tmp_path / "sm_90/.test_transpose.json.0123456789abcdef.gpuperf-tmp"
    leftover.parent.mkdir()
    leftover.write_bytes(b'{"half": ')
    assert BaselineStore(tmp_path).archs() == ()
    BaselineStore(tmp_path).write(Update())
    assert not leftover.exists()
