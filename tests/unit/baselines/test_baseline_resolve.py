"""``gpuperf resolve``: two branches that recorded, merged record by record."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, make_time, time_update
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.resolve import resolve
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.three_way import Versions, merge_manifests, merge_static
from pytest_gpuperf.baselines.unmerged import sides, unmerged
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.model.evidence import Key

MODULE = make_key().module
FILE = "sm_90/example_suite/test_transpose.json"


def git(folder: Path, *arguments: str) -> str:
    """Output of a git command, whatever its exit status."""
    who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


Change = Callable[[BaselineStore], object]


@pytest.fixture
def merging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Change, Change, Change], BaselineStore]:
    """Makes a repository in the middle of a merge of what ``ours`` and ``theirs`` wrote upon ``base``."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.chdir(tmp_path)
    store = BaselineStore(tmp_path / "baselines")

    def make(base: Change, ours: Change, theirs: Change) -> BaselineStore:
        git(tmp_path, "init", "-q", "-b", "ours")
        base(store)
        commit(tmp_path)
        git(tmp_path, "checkout", "-q", "-b", "theirs")
        theirs(store)
        commit(tmp_path)
        git(tmp_path, "checkout", "-q", "ours")
        ours(store)
        commit(tmp_path)
        git(tmp_path, "merge", "theirs")
        assert git(tmp_path, "ls-files", "-u")
        store.forget()
        return store

    return make


def records(**registers: int) -> Change:
    """Writes static records of tests of these names."""
    static = {("sm_90", NVRTC, make_key(test)): make_static(count) for test, count in registers.items()}
    return lambda store: store.write(Update(static=static))


def found(store: BaselineStore) -> dict[str, int]:
    tests = store.static_tests("sm_90", MODULE, NVRTC)
    return {test: record.profile.registers for test, of in tests.items() for record in of.values()}


def test_what_one_side_changed_is_taken_and_what_both_changed_stays_ours(merging, capsys) -> None:
    store = merging(records(a=1, b=1, c=1), records(a=2, c=2, mine=5), records(b=3, c=3, other=6))
    with pytest.raises(BaselineError, match="merge conflict"):
        found(store)
    store.forget()
    assert main(["resolve"]) == 0
    assert found(store) == {"a": 2, "b": 3, "c": 2, "mine": 5, "other": 6}
    assert capsys.readouterr().out == (
        f"merged   {FILE}\n"
        f"  both changed, ours kept:  {MODULE}::c [padded]\n"
        "Neither side has evidence of the merged code for what both changed: ours is kept. "
        "Resolve the code, then record it anew:\n"
        f"  pytest --gpuperf --update-baselines=all {MODULE}::c\n"
        f"Nothing was staged: git add {store.root}\n"
    )
    file = store.load("sm_90", MODULE)
    assert file is not None
    assert (store.root / FILE).read_bytes() == canonical_bytes(file)
    assert git(store.root, "ls-files", "-u"), "nothing is staged"
    git(store.root, "add", ".")
    assert main(["resolve"]) == 0
    assert capsys.readouterr().out == f"Nothing is in conflict in {store.root}.\n"


def test_rounds_of_equal_code_are_kept_of_both_sides(merging) -> None:
    first, second, third = map(make_session, (1, 2, 3))
    store = merging(*(lambda store, one=one: store.write(time_update(one)) for one in (first, third, second)))
    [outcome] = resolve(store.root)
    assert outcome.merged is not None
    assert outcome.merged.changed_by_both == ()
    assert store.sessions(H200, MODULE) == (first, second, third)
    record = store.time(H200, make_key())
    assert record is not None
    assert {entry.session for entry in record.rounds} == {one.id for one in (first, second, third)}


def test_times_of_code_that_differs_stay_ours(merging) -> None:
    def timed(session, code):
        old = make_time(session, cubin="")
        record = msgspec.structs.replace(old, identity=msgspec.structs.replace(old.identity, code=code * 64))
        return lambda store: store.write(Update(time={(H200, make_key()): record}, sessions=[session]))

    sessions = [make_session(number) for number in (1, 2, 3)]
    store = merging(*map(timed, sessions, "abc"))
    [outcome] = resolve(store.root)
    assert outcome.merged is not None
    assert outcome.merged.changed_by_both == (make_key(),)
    assert store.sessions(H200, MODULE) == (sessions[1],)


def test_every_file_of_every_target_is_resolved_at_once_and_told_in_one_command(merging, capsys) -> None:
    def of(count: int) -> Change:
        keys = [make_key("test_x", module=f"test_{letter}.py") for letter in "ab"]
        static = {(arch, NVRTC, key): make_static(count) for key in keys for arch in ("sm_80", "sm_90")}
        return lambda store: store.write(Update(static=static))

    store = merging(of(1), of(2), of(3))
    assert main(["resolve"]) == 0
    said = capsys.readouterr().out
    assert said.count("merged  ") == 4
    assert "\n  pytest --gpuperf --update-baselines=all test_a.py::test_x test_b.py::test_x\n" in said
    assert len(store.keys("sm_80")) == len(store.keys("sm_90")) == 2


def test_both_sides_new_targets_are_in_the_manifest(merging) -> None:
    def with_arch(arch: str) -> Change:
        return lambda store: store.write(Update(static={(arch, NVRTC, make_key()): make_static()}))

    store = merging(with_arch("sm_90"), with_arch("sm_120"), with_arch("sm_80"))
    resolve(store.root)
    read = manifest.read(store.root)
    assert read is not None
    assert read.architectures == ("sm_80", "sm_90", "sm_120")
    assert manifest.with_targets(store.root, []) == []


def test_a_file_that_one_side_removed_stays_as_ours_and_is_named(merging, capsys) -> None:
    def removed(store: BaselineStore) -> None:
        (store.root / FILE).unlink()

    store = merging(records(a=1), removed, records(a=2))
    assert main(["resolve"]) == 0
    assert f"  one removed, the other changed, as ours:  {MODULE}::a [padded]\n" in capsys.readouterr().out
    assert not (store.root / FILE).parent.exists()


def test_a_file_that_is_no_evidence_is_left(merging, capsys) -> None:
    def readme(text: str) -> Change:
        def write(store: BaselineStore) -> None:
            store.root.mkdir(exist_ok=True)
            (store.root / "README").write_text(text)

        return write

    merging(readme("a\n"), readme("b\n"), readme("c\n"))
    assert main(["resolve"]) == 1
    assert "left     README: no evidence of a target; resolve it by hand\n" in capsys.readouterr().out


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_markers_do_where_git_knows_of_no_conflict(merging, style: str) -> None:
    store = merging(records(a=1, b=1), records(a=2, b=1, mine=4), records(a=3, b=1, other=5))
    git(store.root, "checkout", f"--conflict={style}", "--", FILE)
    git(store.root, "add", ".")
    [outcome] = resolve(store.root)
    assert outcome.merged is not None
    assert outcome.merged.changed_by_both == (make_key("a"),)
    assert found(store) == {"a": 2, "b": 1, "mine": 4, "other": 5}


@pytest.mark.parametrize("how", ["recorded anew", "one side taken by hand"])
def test_what_was_resolved_since_is_left_alone(merging, capsys, how: str) -> None:
    store = merging(records(a=1, b=1), records(a=2, b=1), records(a=3, b=4))
    if how == "recorded anew":
        assert main(["resolve"]) == 0
        store.forget()
        records(a=9)(store)
    else:
        git(store.root, "checkout", "--theirs", "--", FILE)
    capsys.readouterr()
    before = (store.root / FILE).read_bytes()
    assert main(["resolve"]) == 0
    assert (store.root / FILE).read_bytes() == before
    said = f"kept     {FILE}: resolved already: git add it\nNothing was staged: git add {store.root}\n"
    assert capsys.readouterr().out == said


def test_of_several_files_those_that_are_not_resolved_yet_are_merged(merging, capsys) -> None:
    def of(count: int) -> Change:
        keys = [make_key("test_x", module=f"test_{letter}.py") for letter in "ab"]
        return lambda store: store.write(Update(static={("sm_90", NVRTC, key): make_static(count) for key in keys}))

    store = merging(of(1), of(2), of(3))
    git(store.root, "checkout", "--theirs", "--", "sm_90/test_a.json")
    assert main(["resolve"]) == 0
    said = capsys.readouterr().out
    assert "kept     sm_90/test_a.json: resolved already" in said
    assert "merged   sm_90/test_b.json\n" in said
    tests = [store.static_tests("sm_90", f"test_{letter}.py", NVRTC) for letter in "ab"]
    assert [test["test_x"]["padded"].profile.registers for test in tests] == [3, 2]


def test_a_manifest_that_was_resolved_since_is_left_alone(merging, capsys) -> None:
    def with_arch(arch: str) -> Change:
        return lambda store: store.write(Update(static={(arch, NVRTC, make_key()): make_static()}))

    store = merging(with_arch("sm_90"), with_arch("sm_120"), with_arch("sm_80"))
    git(store.root, "checkout", "--ours", "--", "manifest.json")
    assert main(["resolve"]) == 0
    assert "kept     manifest.json: resolved already: git add it\n" in capsys.readouterr().out
    read = manifest.read(store.root)
    assert read is not None
    assert read.architectures == ("sm_90", "sm_120")


def test_a_file_that_git_may_not_merge_as_text_is_merged_by_its_records(merging) -> None:
    def with_attribute(store: BaselineStore) -> None:
        records(a=1, b=1)(store)
        (store.root / ".gitattributes").write_text("*.json -merge\n")

    store = merging(with_attribute, records(a=2, b=1), records(a=1, b=4))
    assert found(store) == {"a": 2, "b": 1}, "git left ours there"
    store.forget()
    [outcome] = resolve(store.root)
    assert outcome.merged is not None
    assert found(store) == {"a": 2, "b": 4}


def test_a_version_that_cannot_be_read_changes_nothing(merging, capsys) -> None:
    def spoil(store: BaselineStore) -> None:
        (store.root / FILE).write_text("{")

    store = merging(records(a=1), spoil, records(a=2))
    before = (store.root / FILE).read_bytes()
    assert main(["resolve"]) == 1
    assert "this baseline cannot be read" in capsys.readouterr().err
    assert (store.root / FILE).read_bytes() == before


def test_a_folder_that_looks_like_a_bare_repository_has_git_run_nothing(tmp_path: Path) -> None:
    """A merged branch can bring one along, whose settings name a program."""
    root, trace = tmp_path / "baselines", tmp_path / "it ran"
    git(tmp_path, "init", "-q", "--bare", "baselines")
    for name, value in (("core.bare", "false"), ("core.worktree", ".."), ("core.fsmonitor", f"touch '{trace}'; false")):
        git(root, "config", name, value)
    assert unmerged(root) == []
    assert not trace.exists()


def test_a_text_without_markers_has_no_sides() -> None:
    assert sides(b'{\n  "a": 1\n}\n') is None
    assert sides(b"a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\nd\n") == Versions(None, b"a\nb\nd\n", b"a\nc\nd\n")


# --- one file ------------------------------------------------------------------------------------

TESTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3))


def file_of(tests: dict[str, int]) -> StaticFile:
    toolchains = {NVRTC: {test: {"padded": make_static(count)} for test, count in tests.items()}} if tests else {}
    return StaticFile(target="sm_90", toolchains=toolchains, schema=SCHEMA_VERSION)


def registers_of(file: StaticFile | None) -> dict[str, int]:
    tests = file.toolchains[NVRTC] if file else {}
    return {test: of["padded"].profile.registers for test, of in tests.items()}


@given(base=TESTS, ours=TESTS, theirs=TESTS)
def test_each_record_follows_the_side_that_changed_it(base, ours, theirs) -> None:
    merged = merge_static(Versions(*map(file_of, (base, ours, theirs))), "sm_90", MODULE)
    differ = {key.test for key in (*merged.changed_by_both, *merged.removed_by_one)}
    assert merged.file is None or isinstance(merged.file, StaticFile)
    result = registers_of(merged.file)
    for test in "abcd":
        was, mine, other = (side.get(test) for side in (base, ours, theirs))
        assert (test in differ) == (len({was, mine, other}) == 3 or (mine != other and was not in (mine, other)))
        assert result.get(test) == (other if mine == was else mine)
        assert (Key(module=MODULE, test=test, workload="padded") in merged.changed_by_both) == (
            test in differ and None not in (mine, other)
        )


@given(sides=st.tuples(*[st.none() | st.frozensets(st.sampled_from(["sm_80", "sm_90", "sm_120"]))] * 3))
def test_a_manifest_keeps_what_no_side_took_off(sides) -> None:
    base, ours, theirs = (
        None if names is None else Manifest(schema=manifest.SCHEMA, architectures=tuple(sorted(names)), gpu_models=())
        for names in sides
    )
    if ours is None and theirs is None:
        return
    merged = merge_manifests(Versions(base, ours, theirs))
    was, mine, other = (set(names or ()) for names in sides)
    mine, other = (mine if ours else other), (other if theirs else mine)
    assert set(merged.architectures) == (mine & other) | ((mine | other) - was)
