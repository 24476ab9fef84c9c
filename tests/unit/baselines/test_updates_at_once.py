"""Updates of one folder by several processes, each with a temporary folder of its own, some of them killed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from baseline_samples import NVRTC

from pytest_gpuperf.baselines import layout, working_folder
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.file_types import StaticFile
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore

WRITERS = 8
WORKLOADS = 400
MODULES = 4
KILLS = int(os.environ.get("GPUPERF_TEST_KILLS", "20"))
KILLED = ("ann", "bob")
"""Writers of the test with kills, which all end that way."""
LONGEST_WAIT_S = 0.25
"""Until a kill: several updates."""
EVIDENCE = re.compile(
    r"baselines/(manifest\.json|sm_90/folder/test_\d\.json|cubins/[0-9a-f]{2}/[0-9a-f]{64}\.cubin\.z)"
)
LASTING = {".gitignore", "lock"}
"""What may lie in the working folder when nobody writes."""

# Records WORKLOADS in MODULES as a writer of this name, part by part; says which part is on disk.
WRITER = """
import pathlib, sys
from baseline_samples import NVRTC, make_key, make_static
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore

def update(root, name, modules, workloads, number):
    keys = [make_key(f"test_of_{name}", str(i), f"folder/test_{i % modules}.py") for i in workloads]
    static = {("sm_90", NVRTC, key): make_static(number) for key in keys}
    BaselineStore(root).write(Update(static=static, cubins=[f"{name} {number}".encode()]))

root, name = pathlib.Path(sys.argv[1]), sys.argv[2]
modules, workloads, part = map(int, sys.argv[3:])
"""
IN_PARTS = f"""{WRITER}
for first in range(0, workloads, part):
    update(root, name, modules, range(first, first + part), 32)
"""
# Forks a writer for each number on stdin, so that the imports are paid once; that one writes the number and those after
# it until it is killed, and says so after each.  It says its process id before, and its end is told.
WITHOUT_END = f"""{WRITER}
import itertools, os
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        for number in itertools.count(int(line)):
            update(root, name, modules, range(workloads), number)
            os.write(1, b"%d\\n" % number)  # whole, or not at all
    os.waitpid(child, 0)
    print("end", flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@contextmanager
def writer(program: str, root: Path, name: str, *figures: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes, with a temporary folder of its own."""
    own = root.parent / f"tmp_{name}"
    own.mkdir()
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", program, str(root), name, *map(str, figures)]
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(own)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process


def test_updates_at_once_lose_nothing_whatever_their_temporary_folders(root: Path) -> None:
    with ExitStack() as stack:
        running = [
            stack.enter_context(writer(IN_PARTS, root, f"writer_{n}", MODULES, WORKLOADS, WORKLOADS // 4))
            for n in range(WRITERS)
        ]
        assert [process.wait() for process in running] == [0] * WRITERS
    assert len(BaselineStore(root).keys("sm_90")) == WRITERS * WORKLOADS == 3200
    assert len(stored_cubins(root)) == WRITERS
    assert nothing_is_left(root)


class Killed:
    """A writer that is started and killed again and again."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._name = name
        self._process_id = 0
        self._last = 0
        """The last number that it said to be on disk."""

    def start(self) -> None:
        print(self._last + 1, file=self._stdin, flush=True)
        self._process_id = int(self._stdout.readline())

    def kill(self) -> None:
        os.kill(self._process_id, signal.SIGKILL)
        for line in iter(self._stdout.readline, "end\n"):
            self._last = int(line)

    def has_lost_nothing(self, file: StaticFile | None) -> None:
        """Asserts that a module's file has what was said to be on disk, or the update after that, whole."""
        records = file.toolchains[NVRTC].get(f"test_of_{self._name}", {}) if file else {}
        found = {record.profile.registers for record in records.values()} or {0}
        assert found in ({self._last}, {self._last + 1})


def files_are_whole(root: Path, writers: list[Killed]) -> None:
    """Asserts that each file is that of an update, and that no update is lost that was said to be written."""
    store = BaselineStore(root)
    for module in (f"folder/test_{number}.py" for number in range(MODULES)):
        file = store.load("sm_90", module)
        for one in writers:
            one.has_lost_nothing(file if isinstance(file, StaticFile) else None)
        if file is not None:
            assert layout.evidence_path(root, "sm_90", module).read_bytes() == canonical_bytes(file)
    for sha256 in stored_cubins(root).values():
        assert store.cubin(sha256)


def added_by_git(root: Path) -> list[str]:
    """What ``git add -A`` would take."""
    done = subprocess.run(["git", "add", "-A", "-n", "."], cwd=root.parent, capture_output=True, text=True, check=True)
    return [line.removeprefix("add '").removesuffix("'") for line in done.stdout.splitlines()]


def leftovers(root: Path) -> list[Path]:
    return [*root.rglob(f"*{working_folder.LEFTOVER}")]


def nothing_is_left(root: Path) -> bool:
    return not leftovers(root) and {path.name for path in (root / working_folder.NAME).iterdir()} <= LASTING


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_kill_9_of_updates_at_once_loses_nothing_and_leaves_nothing_that_git_would_take(root: Path) -> None:
    moments = random.Random(18)
    subprocess.run(["git", "init", "-q", root.parent], check=True)
    (root.parent / ".gitignore").write_text(".gitignore\ntmp_*\n")
    kills = interrupted = 0
    with ExitStack() as stack:
        writers = [Killed(stack.enter_context(writer(WITHOUT_END, root, name, MODULES, 8, 8)), name) for name in KILLED]
        while kills < KILLS or (not interrupted and kills < 20 * KILLS):  # on a busy machine few meet a file
            for one in writers:
                one.start()
            for one in moments.sample(writers, len(writers)):
                time.sleep(moments.uniform(0.0, LONGEST_WAIT_S))
                one.kill()
            files_are_whole(root, writers)
            assert [path for path in added_by_git(root) if not EVIDENCE.fullmatch(path)] == []
            interrupted += bool(leftovers(root))
            BaselineStore(root).write(Update())
            assert nothing_is_left(root)
            if kills % 4 == 0:
                shutil.rmtree(root / working_folder.NAME)
            kills += len(writers)
    print(f"{kills} kills, {interrupted} times with files that were being written, {len(stored_cubins(root))} updates")
    assert interrupted > 0
