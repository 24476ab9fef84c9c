"""A run against another revision: what it starts, what it refuses, and what it puts on record for its own tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from baseline_samples import CUBIN, make_round, make_session, make_time
from git_samples import commit, git
from record_samples import static_of
from run_samples import COMPILER, H200, MODULE, TEST, Run, key, workload

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import child_command
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.revision import RevisionFound, read_revision
from pytest_gpuperf.options import Options
from pytest_gpuperf.session import compare_revision
from pytest_gpuperf.session.compare_revision import FOUND_FILE, begin

SHA = make_time(make_session()).cubin
NOTHING = RevisionFound(tests=(), lacking={}, failed=frozenset(), device=None, leaks=(), modules=3)
Child = Callable[[Path], int | None]


class Comparing:
    """A run in a repository whose last commit it is to be compared with; its child process is a function."""

    def __init__(self, run: Run) -> None:
        self.run, self.root = run, run.config.rootpath
        self.child: Child = lambda log: self.leaves(log, NOTHING)
        self.started: list[tuple[Sequence[str], Path, Path, float]] = []
        self.lines: list[str] = []
        (self.root / "tests").mkdir()
        (self.root / MODULE).write_text("")
        self.commit = commit(self.root, "Unroll the loop")
        run.with_options(against="HEAD", archs=("sm_90",))
        terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=self.lines.append)
        run.config.pluginmanager.get_plugin = {"terminalreporter": terminal}.get
        run.config.inipath = None
        run.config.invocation_params = SimpleNamespace(args=("--gpuperf",), dir=self.root)

    def leaves(self, log: Path, found: RevisionFound) -> int:
        (log.parent / FOUND_FILE).write_bytes(msgspec.json.encode(found))
        return 0

    def run_child(self, command: Sequence[str], cwd: Path, log: Path, limit_s: float) -> int | None:
        self.started.append((command, cwd, log, limit_s))
        return self.child(log)

    def begun(self, **options: Any) -> Options:
        return begin(self.run.config, self.run.with_options(**options).options)


@pytest.fixture
def comparing(run: Run, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Comparing:
    made = Comparing(run)
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(compare_revision, "run_child", made.run_child)
    return made


def test_the_revisions_tests_run_in_a_worktree_and_the_options_name_what_they_left(comparing: Comparing) -> None:
    options = comparing.begun()
    revision = read_revision(options.baselines)
    assert revision is not None
    assert vars(options) == {**vars(comparing.run.options), "baselines": options.baselines}
    date = git(comparing.root, "show", "-s", "--format=%cs")
    assert revision.name == f"{comparing.commit[:12]} ({date}, Unroll the loop)"
    assert (revision.commit, revision.archs, revision.modules) == (comparing.commit, ("sm_90",), 3)
    assert (revision.top, revision.others) == (comparing.root.resolve(), (comparing.root.resolve(),))
    assert (revision.tree / MODULE).is_file()
    assert comparing.lines == [f"gpuperf: running the tests of {revision.name}"]
    ((command, cwd, log, limit_s),) = comparing.started
    assert (cwd, log, limit_s) == (revision.tree, options.baselines / "log", 4 * 3600.0)
    assert f"--gpuperf-task={options.baselines / 'task.json'}" in command
    assert "--gpuperf-arch=sm_90" in command
    assert options.baselines.parent == Path(os.environ["GPUPERF_CACHE_DIR"]) / "revisions"


def test_the_child_starts_in_the_folder_of_the_run_where_the_revision_has_it(comparing: Comparing) -> None:
    comparing.run.config.invocation_params.dir = comparing.root / "tests"
    revision = read_revision(comparing.begun().baselines)
    assert revision is not None
    assert comparing.started[0][1] == revision.tree / "tests"
    (comparing.root / "new").mkdir()
    comparing.run.config.invocation_params.dir = comparing.root / "new"
    revision = read_revision(comparing.begun().baselines)
    assert revision is not None
    assert comparing.started[1][1] == revision.tree


def test_another_python_and_the_places_of_the_run_are_handed_on(
    comparing: Comparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[Any] = []
    written = child_command.write_task
    monkeypatch.setattr(child_command, "write_task", lambda task, file: (tasks.append(task), written(task, file)))
    places = {"file_or_dir": [f"tests/../{MODULE}::{TEST}"]}
    comparing.run.config.getoption = places.get
    comparing.begun(against_python=Path("/opt/python"))
    assert comparing.started[0][0][0] == "/opt/python"
    assert tasks[0].named == (f"{MODULE}::{TEST}",)
    comparing.run.config.getoption = {"file_or_dir": [f"{MODULE}::{TEST}", "tests"]}.get
    comparing.begun()
    assert tasks[1].named == ()  # its file is given whole


def test_a_revision_without_any_of_the_places_has_nothing_to_compare_with(comparing: Comparing) -> None:
    (comparing.root / "test_new.py").touch()
    comparing.run.config.getoption = {"file_or_dir": ["test_new.py"]}.get
    revision = read_revision(comparing.begun().baselines)
    assert comparing.started == []
    assert revision is not None
    assert (revision.lacking, revision.modules) == ({}, 0)


@pytest.mark.parametrize(("place", "refused"), [("test_none.py", False), ("/nowhere", True), ("../else", True)])
def test_only_a_place_outside_of_the_repository_is_refused(comparing: Comparing, place: str, refused: bool) -> None:
    comparing.run.config.getoption = {"file_or_dir": [place]}.get
    if refused:
        with pytest.raises(pytest.UsageError, match="lies outside of the repository"):
            comparing.begun()
    else:
        comparing.begun()  # pytest says what is not there
    assert comparing.started == []


# --- what the tests left goes on record ------------------------------------------------------------


def evidence(test: str = TEST, cubins: Mapping[str, bytes] | None = None, **fields: Any) -> TestEvidence:
    session = make_session()
    static = {"sm_90": msgspec.structs.replace(static_of(), cubin=SHA)}
    work = workload(
        "copy",
        static=static,
        toolchain=COMPILER,
        time=make_time(session, rounds=(make_round(session).recorded(),)),
        **fields,
    )
    work = msgspec.structs.replace(work, key=key(test=test))
    packed = {sha: zlib.compress(code) for sha, code in (cubins or {}).items()}
    return TestEvidence(module=MODULE, test=test, workloads=(work,), session=session, cubins=packed)


def test_machine_code_and_times_go_on_record(comparing: Comparing) -> None:
    failed = evidence("test_failed")
    unlaunched = evidence("test_unlaunched", launched=False)
    tests = (evidence(cubins={SHA: CUBIN}), failed, unlaunched)
    found = msgspec.structs.replace(
        NOTHING, tests=tests, device=H200, failed=frozenset({f"{MODULE}::test_failed"}), lacking={"a.py": "why"}
    )
    comparing.child = lambda log: comparing.leaves(log, found)
    folder = comparing.begun().baselines
    store, revision = BaselineStore(folder), read_revision(folder)
    assert revision is not None
    assert revision.lacking == {"a.py": "why"}
    for name in (TEST, "test_failed", "test_unlaunched"):
        record = store.static("sm_90", key(test=name), COMPILER).record
        assert record is not None
        assert (record.kernel, record.cubin) == ("scale", SHA)
    time = store.time(H200.slug, key())
    assert time is not None
    assert (time.cubin, store.cubin(SHA)) == (SHA, CUBIN)
    assert store.time(H200.slug, key(test="test_failed")) is None  # what it ran may be wrong
    assert store.time(H200.slug, key(test="test_unlaunched")) is not None


def test_machine_code_that_nobody_brought_along_is_not_named(comparing: Comparing) -> None:
    comparing.child = lambda log: comparing.leaves(log, msgspec.structs.replace(NOTHING, tests=(evidence(),)))
    store = BaselineStore(comparing.begun().baselines)
    record = store.static("sm_90", key(), COMPILER).record
    assert record is not None
    assert record.cubin == ""
    assert store.time(H200.slug, key()) is None  # no test had a GPU
    with_gpu = msgspec.structs.replace(NOTHING, tests=(evidence(),), device=H200)
    comparing.child = lambda log: comparing.leaves(log, with_gpu)
    time = BaselineStore(comparing.begun().baselines).time(H200.slug, key())
    assert time is not None
    assert time.cubin == ""


# --- what is refused -------------------------------------------------------------------------------


def refused(comparing: Comparing, **options: Any) -> str:
    with pytest.raises(pytest.UsageError) as problem:
        comparing.begun(**options)
    return str(problem.value)


def test_a_revision_that_is_none(comparing: Comparing) -> None:
    assert refused(comparing, against="nowhere").startswith("--gpuperf-against=nowhere: ")
    assert comparing.started == []


def test_tests_that_ran_code_of_the_working_tree(comparing: Comparing) -> None:
    leaks = tuple(f"leak {number}" for number in range(30))
    comparing.child = lambda log: comparing.leaves(log, msgspec.structs.replace(NOTHING, leaks=leaks))
    head, *lines = refused(comparing).splitlines()
    assert head.startswith(f"--gpuperf-against=HEAD: the tests of {comparing.commit[:12]} (")
    assert head.endswith(" ran code that is not theirs, so nothing would be compared:")
    assert lines == [f"  leak {number}" for number in range(compare_revision.LOG_LINES)]


@pytest.mark.parametrize(
    ("status", "log", "why"),
    [
        (3, "", "pytest exit status 3"),
        (None, "", "it hung"),
        (2, "E   ImportError: no\nE   second\n", "ImportError: no"),
    ],
)
def test_tests_that_do_not_come_to_an_end(comparing: Comparing, status: int | None, log: str, why: str) -> None:
    text = log + "".join(f"line {number}\n" for number in range(compare_revision.LOG_LINES))

    def ended(file: Path) -> int | None:
        file.write_text(text)
        return status

    comparing.child = ended
    last = "".join(f"\n  line {number}" for number in range(compare_revision.LOG_LINES))
    assert refused(comparing) == (
        f"--gpuperf-against=HEAD: its tests did not come to an end ({why}). The last lines of their run:{last}"
    )


def test_a_python_that_cannot_be_started(comparing: Comparing) -> None:
    def none(log: Path) -> int:
        raise FileNotFoundError("no such file")

    comparing.child = none
    said = refused(comparing, against_python=Path("/opt/python"))
    assert said == "--gpuperf-against: /opt/python cannot be started (no such file)"


def test_a_cache_that_cannot_be_written(comparing: Comparing, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compare_revision, "make_private", full)
    place = Path(os.environ["GPUPERF_CACHE_DIR"]) / "revisions"
    assert refused(comparing) == (
        f"--gpuperf-against: nothing can be kept in {place} (No space left on device): let GPUPERF_CACHE_DIR name a "
        "folder that can be written"
    )
