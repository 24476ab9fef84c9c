"""A run against another revision: what it starts, what it refuses, and what it puts on record for its own tests."""

from __future__ import annotations

import contextlib
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from baseline_samples import CUBIN, make_round, make_session, make_time
from git_samples import commit, git
from record_samples import static_of
from run_samples import COMPILER, H200, MODULE, TEST, Run, judgement, key, workload

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import Revision, RevisionFound, RevisionTask, read_revision
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.revision import against, process, worktree
from pytest_gpuperf.revision.against import NOTHING, begin, reworded, with_itself
from pytest_gpuperf.timing.process_opponent import OtherSideLost

SHA = make_time(make_session()).cubin


class Child:
    """Stands for the revision's process."""

    found = NOTHING
    problem: BaseException | None = None
    made: list[Child]

    def __init__(self, config: Any, revision: Revision, environ: Any, named: Any = (), *, evidence: bool) -> None:
        self.revision, self.named, self.ended = revision, named, False
        assert evidence
        Child.made.append(self)

    def evidence(self) -> RevisionFound:
        if Child.problem is not None:
            raise Child.problem
        return Child.found

    def close(self, grace_s: float = 0.0) -> None:
        self.ended = True

    def explained(self, problem: OtherSideLost) -> str:
        return f"{problem} (pytest exit status 3)"

    def last_lines(self) -> str:
        return "\n  the last line"


class Comparing:
    """A run in a repository whose last commit it is to be compared with."""

    def __init__(self, run: Run) -> None:
        self.run, self.root = run, run.config.rootpath
        self.lines: list[str] = []
        (self.root / "tests").mkdir()
        (self.root / MODULE).write_text("")
        self.commit = commit(self.root, "Unroll the loop")
        run.with_options(against="HEAD", archs=("sm_90",))
        terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=self.lines.append)
        run.config.pluginmanager.get_plugin = {"terminalreporter": terminal}.get
        run.config.inipath = None
        self.ends = contextlib.ExitStack()
        run.config.add_cleanup = self.ends.callback

    def begun(self, found: RevisionFound = NOTHING, **options: Any) -> Options:
        Child.found = found
        return begin(self.run.config, self.run.with_options(**options).options)

    def refused(self, **options: Any) -> str:
        with pytest.raises(pytest.UsageError) as problem:
            self.begun(**options)
        return str(problem.value)


@pytest.fixture
def comparing(
    run: Run, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Comparing]:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(against, "RevisionProcess", Child)
    monkeypatch.setattr(Child, "problem", None)
    monkeypatch.setattr(Child, "made", [], raising=False)
    run.config.hook = SimpleNamespace(pytest_gpuperf_device=lambda **_: None)
    made = Comparing(run)
    yield made
    made.ends.close()


def test_the_options_name_what_the_revisions_tests_left(comparing: Comparing) -> None:
    options = comparing.begun()
    revision = read_revision(options.baselines)
    assert revision is not None
    assert vars(options) == {**vars(comparing.run.options), "baselines": options.baselines}
    date = git(comparing.root, "show", "-s", "--format=%cs")
    assert revision.name == f"{comparing.commit[:12]} ({date}, Unroll the loop)"
    assert (revision.commit, revision.archs) == (comparing.commit, ("sm_90",))
    assert (revision.top, revision.others) == (comparing.root.resolve(), (comparing.root.resolve(),))
    assert (revision.tree / MODULE).is_file()
    assert comparing.lines == [f"gpuperf: running the tests of {revision.name}"]
    assert options.baselines == revision.tree.with_suffix(".evidence")


@pytest.mark.parametrize(("plugins", "ends"), [(set(), False), ({"dsession"}, True)], ids=["alone", "xdist"])
def test_its_process_goes_on_for_callables_unless_workers_start_their_own(
    comparing: Comparing, plugins: set[str], *, ends: bool
) -> None:
    comparing.run.plugins |= plugins
    comparing.begun()
    (child,) = Child.made
    assert (child.ended, process.RUNNING in comparing.run.config.stash) == (ends, not ends)


@pytest.mark.parametrize(
    ("places", "named"),
    [
        ([f"tests/../{MODULE}::{TEST}"], (f"{MODULE}::{TEST}",)),
        ([f"{MODULE}::{TEST}", "tests"], ()),  # its file is given whole
    ],
)
def test_tests_that_are_given_by_name_are_those_of_the_revision(
    comparing: Comparing, places: list[str], named: tuple[str, ...]
) -> None:
    comparing.run.config.getoption = {"file_or_dir": places}.get
    comparing.begun()
    assert Child.made[0].named == named


def test_the_command_of_its_process(comparing: Comparing, tmp_path: Path) -> None:
    comparing.run.config.getoption = {"file_or_dir": [f"tests/../{MODULE}::{TEST}"]}.get
    revision = read_revision(comparing.begun().baselines)
    assert revision is not None
    task = RevisionTask(folder=tmp_path, others=(), tree=revision.tree, reading=3, writing=4)
    command = process._command(comparing.run.config, revision, task)
    assert command[0] == sys.executable
    assert command[-3:] == [f"--gpuperf-task={tmp_path / 'task.json'}", "--gpuperf-arch=sm_90",
                            str(revision.tree / MODULE)]  # fmt: skip
    comparing.run.with_options(against_python=Path("/opt/python"))
    comparing.run.plugins.add("xdist")
    command = process._command(comparing.run.config, revision, task)
    assert command[0] == "/opt/python"
    assert "-n" not in command  # it may lack pytest-xdist


def test_a_revision_without_any_of_the_places_has_nothing_to_compare_with(comparing: Comparing) -> None:
    (comparing.root / "test_new.py").touch()
    comparing.run.config.getoption = {"file_or_dir": ["test_new.py"]}.get
    revision = read_revision(comparing.begun().baselines)
    assert Child.made == []
    assert revision is not None
    assert revision.lacking == {}


@pytest.mark.parametrize(("place", "refused"), [("test_none.py", False), ("/nowhere", True), ("../else", True)])
def test_only_a_place_outside_of_the_repository_is_refused(comparing: Comparing, place: str, *, refused: bool) -> None:
    comparing.run.config.getoption = {"file_or_dir": [place]}.get
    if refused:
        assert "lies outside of the repository" in comparing.refused()
    else:
        comparing.begun()  # pytest says what is not there
    assert Child.made == []


# --- what the tests left goes on record ------------------------------------------------------------


def evidence(test: str = TEST, cubins: Mapping[str, bytes] | None = None, **fields: Any) -> TestEvidence:
    session = make_session()
    static = {"sm_90": msgspec.structs.replace(static_of(), cubin=SHA)}
    time = make_time(session, rounds=(make_round(session),))
    work = workload("copy", static=static, toolchain=COMPILER, time=time, **fields)
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
    folder = comparing.begun(found).baselines
    store, revision = BaselineStore(folder), read_revision(folder)
    assert revision is not None
    assert revision.lacking == {"a.py": "why"}
    for name in (TEST, "test_failed", "test_unlaunched"):
        record = store.static("sm_90", key(test=name), COMPILER)
        assert record is not None
        assert (record.kernel, record.cubin) == ("scale", SHA)
    time = store.time(H200.slug, key())
    assert time is not None
    assert (time.cubin, store.cubin(SHA)) == (SHA, CUBIN)
    assert store.time(H200.slug, key(test="test_failed")) is None  # what it ran may be wrong
    assert store.time(H200.slug, key(test="test_unlaunched")) is not None


def test_machine_code_that_nobody_brought_along_is_not_named(comparing: Comparing) -> None:
    store = BaselineStore(comparing.begun(msgspec.structs.replace(NOTHING, tests=(evidence(),))).baselines)
    record = store.static("sm_90", key(), COMPILER)
    assert record is not None
    assert record.cubin == ""
    assert store.time(H200.slug, key()) is None  # no test had a GPU
    with_gpu = msgspec.structs.replace(NOTHING, tests=(evidence(),), device=H200)
    time = BaselineStore(comparing.begun(with_gpu).baselines).time(H200.slug, key())
    assert time is not None
    assert time.cubin == ""


def test_nothing_of_a_process_that_used_files_of_the_working_tree_is_compared(comparing: Comparing) -> None:
    found = msgspec.structs.replace(
        NOTHING, tests=(evidence(),), device=H200, foreign=("/a/lib.so was loaded",), collected=frozenset({MODULE})
    )
    folder = comparing.begun(found).baselines
    revision = read_revision(folder)
    assert revision is not None
    assert revision.why_lacking(key()) == "it used a file that is not its own: /a/lib.so was loaded"
    assert BaselineStore(folder).static("sm_90", key(), COMPILER) is None


# --- what is refused -------------------------------------------------------------------------------


def test_a_revision_that_is_none(comparing: Comparing) -> None:
    assert comparing.refused(against="nowhere").startswith("--gpuperf-against=nowhere: ")
    assert Child.made == []


def test_tests_that_do_not_come_to_an_end(comparing: Comparing) -> None:
    Child.problem = OtherSideLost("the other process has ended")
    assert comparing.refused() == (
        "--gpuperf-against=HEAD: its tests did not come to an end: the other process has ended (pytest exit status 3). "
        "The last lines of their run:\n  the last line"
    )
    assert Child.made[0].ended


def test_an_interrupt_ends_the_process(comparing: Comparing) -> None:
    Child.problem = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        comparing.begun()
    assert Child.made[0].ended


def test_a_cache_that_cannot_be_written(comparing: Comparing, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worktree, "make_private", full)
    said = comparing.refused()
    assert "(No space left on device): let GPUPERF_CACHE_DIR name a folder that can be written" in said


def test_evidence_of_a_run_before_is_replaced(comparing: Comparing) -> None:
    with_evidence = msgspec.structs.replace(NOTHING, tests=(evidence(),))
    assert BaselineStore(comparing.begun(with_evidence).baselines).static("sm_90", key(), COMPILER) is not None
    comparing.ends.close()  # the run is over, and the next one has its worktree
    assert BaselineStore(comparing.begun().baselines).static("sm_90", key(), COMPILER) is None


# --- judgements in the words of the revision -------------------------------------------------------

REVISION = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
WITHOUT = msgspec.structs.replace(REVISION, lacking={f"{MODULE}::{TEST}": "it fails"})


@pytest.mark.parametrize(
    ("revision", "verdict", "foreign", "becomes", "reason"),
    [
        (REVISION, Verdict.NEW, "", Verdict.NEW, "it is not in c0 (yesterday)"),
        (REVISION, Verdict.SAME, "", Verdict.SAME, "as it was"),
        (WITHOUT, Verdict.NEW, "", Verdict.NOT_COMPARABLE, "c0 (yesterday) has nothing to compare with: it fails"),
        (REVISION, Verdict.SAME, "a.so was loaded", Verdict.NOT_COMPARABLE,
         "this run used a file that is not its own: a.so was loaded"),
    ],
)  # fmt: skip
def test_a_judgement_in_the_words_of_a_revision(
    revision: Revision, verdict: Verdict, foreign: str, becomes: Verdict, reason: str
) -> None:
    found = reworded(revision, judgement(verdict, reason="as it was"), foreign)
    assert (found.verdict, found.reason) == (becomes, reason)


@pytest.mark.parametrize(
    ("collected", "there", "verdict"),
    [((), True, Verdict.NOT_COMPARABLE), ((MODULE,), True, Verdict.NEW), ((), False, Verdict.NEW)],
)
def test_new_is_not_comparable_where_the_revision_leaves_its_file_out(
    tmp_path: Path, collected: tuple[str, ...], *, there: bool, verdict: Verdict
) -> None:
    if there:
        (tmp_path / MODULE).parent.mkdir(parents=True)
        (tmp_path / MODULE).touch()
    revision = Revision(commit="c0", name="c0", archs=(), collected=frozenset(collected), root=tmp_path)
    found = reworded(revision, judgement(Verdict.NEW), "")
    assert found.verdict is verdict
    assert ("its own settings or conftests leave it out" in found.reason) is (verdict is Verdict.NOT_COMPARABLE)


def test_a_revision_that_is_checked_out_unchanged_is_compared_with_itself(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    here = commit(tmp_path)
    revision = Revision(commit=here, name="this one", archs=())
    assert with_itself(run.config, revision) == (
        "this one is what is checked out here, and no tracked file is changed: this run compares it with itself, and "
        "would always be green. To do: name what came before it (HEAD^, merge-base:main on a branch)"
    )
    (tmp_path / "a.py").write_text("2")
    assert with_itself(run.config, revision) == ""
    commit(tmp_path)
    assert with_itself(run.config, revision) == ""
