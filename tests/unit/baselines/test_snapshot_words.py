"""What is said of files of the baselines that git or the disk does not give, by the name that each has there."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest
from baseline_samples import make_key, static_update
from git_samples import commit, git

from pytest_gpuperf.baselines import layout, manifest, parsing, snapshots, transaction, unmerged
from pytest_gpuperf.baselines.baseline_errors import BaselineWriteError, UnreadableBaselineError, UnsafePathError
from pytest_gpuperf.baselines.git_objects import GitFolder, ObjectReader, RevisionError, said
from pytest_gpuperf.baselines.snapshots import MANIFEST, AtRevision, OnDisk, Place, _place_of
from pytest_gpuperf.baselines.store import BaselineStore

PLACE = Place("sm_90", make_key().module)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A committed folder of baselines."""
    folder = tmp_path / "repository" / "baselines"
    BaselineStore(folder).write(static_update())
    commit(folder.parent)
    return folder


def test_a_file_that_went_while_it_was_read(root: Path) -> None:
    disk = OnDisk(root, "sha1")
    assert (disk.name, set(disk.ids)) == ("the working tree", {PLACE, MANIFEST})
    path = layout.evidence_path(root, *PLACE)
    path.unlink()
    assert disk.file(PLACE) is None
    assert list(disk.skipped.values()) == [f"{path} cannot be read: it went away while it was read"]
    with pytest.raises(UnreadableBaselineError) as problem:
        disk.content(PLACE)
    assert str(problem.value).startswith(f"{path}: ")


@pytest.mark.parametrize("place", [PLACE, MANIFEST])
def test_content_that_git_lacks_or_that_is_too_large(root: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    with ObjectReader(root) as reader:
        state = AtRevision("HEAD", GitFolder(root), reader)
        named = f"HEAD:baselines/{manifest.FILE if place == MANIFEST else 'sm_90/example_suite/test_transpose.json'}"
        size = len(state.content(place))
        for module in (manifest, snapshots):
            name = "MAX_BYTES" if module is manifest else "MAX_JSON_BYTES"
            if (module is manifest) == (place == MANIFEST):
                monkeypatch.setattr(module, name, size)
                assert len(state.content(place)) == size  # the limit itself is allowed
                monkeypatch.setattr(module, name, size - 1)
        with pytest.raises(UnreadableBaselineError) as problem:
            state.content(place)
        assert (str(problem.value).partition(": ")[0], problem.value.problem) == (named, "it is larger than 0 MB")
        state.ids[place] = "0" * 40
        with pytest.raises(UnreadableBaselineError) as problem:
            state.content(place)
        assert (str(problem.value).partition(": ")[0], problem.value.problem) == (
            named, "git lacks its content (git fetch, or git fsck)"
        )  # fmt: skip


def test_files_that_are_no_baselines_have_no_place() -> None:
    inside = {
        "sm_90/a/test_x.json": Place("sm_90", "a/test_x.py"), "manifest.json": MANIFEST, "sm_90": None,
        "sm_90/a/test_x.txt": None, "cubins/ab/abcd.cubin.z": None, "README.json": None, "Some Folder/a.json": None,
    }  # fmt: skip
    assert {path: _place_of(PurePosixPath(path)) for path in inside} == inside
    with pytest.raises(UnsafePathError, match=r"^it is no folder$"):
        _place_of(PurePosixPath("."))


def test_a_link_in_git_is_named_as_git_shows_it(root: Path) -> None:
    file = layout.evidence_path(root, *PLACE)
    file.unlink()
    file.symlink_to("elsewhere")
    commit(root.parent)
    with ObjectReader(root) as reader:
        state = AtRevision("HEAD", GitFolder(root), reader)
    assert state.skipped == {
        PurePosixPath("sm_90/example_suite/test_transpose.json"):
        "HEAD:baselines/sm_90/example_suite/test_transpose.json cannot be read: it is a link"
    }  # fmt: skip


# --- git -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        (b"fatal: not a tree\nmore\n", "not a tree"), (b"\n error: bad \xff\n", "error: bad \ufffd"),
        (b"", "exit status 3"), (b"fatal: " + b"x" * 300, "x" * 190),
    ],
)  # fmt: skip
def test_the_first_line_that_git_complains_with_is_told(complaint: bytes, words: str) -> None:
    assert said(subprocess.CompletedProcess([], 3, b"", complaint)).startswith(words)
    assert len(said(subprocess.CompletedProcess([], 3, b"", complaint))) <= 203


def test_an_object_that_git_lacks_is_none_and_a_tree_is_no_file(root: Path) -> None:
    with ObjectReader(root) as reader:
        assert reader.read("0" * 40, 10) is None
        with pytest.raises(RevisionError, match=r"^git ended while it read object [0-9a-f]{12}\. Try git fsck$"):
            reader.read(git(root, "rev-parse", "HEAD^{tree}"), 10)


def test_a_version_of_an_unmerged_file_that_git_cannot_read(root: Path) -> None:
    with pytest.raises(RevisionError) as problem:
        unmerged._blob(root, PurePosixPath("sm_90/a.json"), "1" * 40)
    text = str(problem.value)
    assert text.startswith(f"sm_90/a.json: git cannot read {'1' * 12}, a version of this file (git cat-file ")
    assert text.endswith("). Try git fsck")
    content = layout.evidence_path(root, *PLACE).read_bytes()
    blob = git(root, "rev-parse", "HEAD:baselines/sm_90/example_suite/test_transpose.json")
    assert unmerged._blob(root, PurePosixPath("a"), blob) == content
    assert unmerged._blob(root, PurePosixPath("a"), None) is None


# --- writing and limits ----------------------------------------------------------------------------


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    for remove in (transaction.remove, transaction.remove_folder):
        with pytest.raises(BaselineWriteError) as problem:
            remove(tmp_path / "none" / "file")
        assert str(tmp_path / "none" / "file") in str(problem.value)
        assert "No such file" in str(problem.value)
    assert parsing.MAX_JSON_BYTES > manifest.MAX_BYTES
