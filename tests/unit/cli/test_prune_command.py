"""What ``gpuperf prune`` names, removes and refuses.  Collection itself is tested in ``test_collected_tests``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli import prune_command
from pytest_gpuperf.cli.collected_tests import CollectedTests
from pytest_gpuperf.model.evidence import Key, StaticProfile, StaticRecord

TOOLCHAIN = "nvrtc 13.0.88"
PROFILE = StaticProfile(
    registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0, barriers=0,
    code_bytes=1024, instructions=60, opcodes={"fp32": 8}, code_hash="0" * 64,
)  # fmt: skip


@pytest.fixture
def baselines(tmp_path: Path) -> Path:
    """Baselines of suite/test_a.py (two tests), suite/test_b.py and other/test_c.py."""
    folder = tmp_path / "baselines"
    record = StaticRecord(kernel="k", source_hash="1" * 64, profile=PROFILE)
    keys = [
        Key(module=module, test=test, workload="k")
        for module, test in [
            ("suite/test_a.py", "test_kept"),
            ("suite/test_a.py", "test_gone"),
            ("suite/test_b.py", "test_b"),
            ("other/test_c.py", "test_c"),
        ]
    ]
    BaselineStore(folder).write(Update(static={("sm_90", TOOLCHAIN, key): record for key in keys}))
    return folder


@pytest.fixture
def collection(tmp_path: Path, baselines: Path) -> CollectedTests:
    """``suite`` was searched: test_a.py has one of its tests left, test_b.py is no more."""
    return CollectedTests(
        root=tmp_path,
        baselines=baselines,
        scope=("suite",),
        named_tests=(),
        tests=frozenset({"suite/test_a.py::test_kept"}),
        modules=frozenset({"suite/test_a.py"}),
        deselected=(),
        failed=(),
        skipped=(),
    )


def recorded(baselines: Path) -> set[str]:
    store = BaselineStore(baselines)
    return {key.test for key in store.keys("sm_90")}


def said(collection: CollectedTests, *, confirmed: bool = False) -> str:
    words: list[str] = []
    assert prune_command.run(collection, confirmed=confirmed, write=words.append) == 0
    return "".join(words)


def test_names_what_is_unused_and_removes_nothing(collection, baselines):
    words = said(collection)
    assert "suite/test_a.py::test_gone" in words
    assert "suite/test_b.py::test_b" in words
    assert "test_kept" not in words
    assert "2 unused. Nothing was removed: add --yes to remove them." in words
    assert recorded(baselines) == {"test_kept", "test_gone", "test_b", "test_c"}


def test_check_says_by_its_status_whether_there_is_anything_to_prune(collection, baselines):
    def status() -> int:
        return prune_command.run(collection, confirmed=False, only_check=True, write=lambda words: None)

    assert status() == 1
    assert recorded(baselines) == {"test_kept", "test_gone", "test_b", "test_c"}
    said(collection, confirmed=True)
    assert status() == 0


def test_removes_with_yes(collection, baselines):
    words = said(collection, confirmed=True)
    assert words.count("removed  ") == 2
    assert recorded(baselines) == {"test_kept", "test_c"}


def test_modules_outside_the_search_are_left_alone_and_named(collection, baselines):
    assert "Not looked at, because outside of suite: other/test_c.py." in said(collection, confirmed=True)
    assert "test_c" in recorded(baselines)


def test_tests_whose_parameters_are_unknown_here_stay(collection, baselines):
    record = StaticRecord(kernel="k", source_hash="1" * 64, profile=PROFILE)
    key = Key(module="suite/test_a.py", test="test_of[H200]", workload="k")
    BaselineStore(baselines).write(Update(static={("sm_90", TOOLCHAIN, key): record}))
    here = dataclasses.replace(collection, empty=frozenset({"suite/test_a.py::test_of"}))
    words = said(here, confirmed=True)
    assert words.count("removed  ") == 2
    assert "because their parameter sets are empty here: suite/test_a.py::test_of[H200].\n" in words
    assert recorded(baselines) == {"test_kept", "test_of[H200]", "test_c"}


def test_everything_in_use_is_said(collection):
    used = dataclasses.replace(collection, scope=("suite/test_a.py",))
    whole = dataclasses.replace(used, tests=frozenset({"suite/test_a.py::test_kept", "suite/test_a.py::test_gone"}))
    assert "Nothing to prune in" in said(whole)


def test_no_baselines_is_nothing_to_prune(collection, tmp_path):
    gone = dataclasses.replace(collection, baselines=tmp_path / "none")
    assert f"Nothing to prune in {tmp_path / 'none'}: there is no such folder." in said(gone, confirmed=True)
    assert not gone.baselines.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"failed": ("suite/test_b.py",)}, "suite/test_b.py could not be collected"),
        ({"named_tests": ("suite/test_a.py::test_kept",)}, "picks single tests"),
        ({"deselected": ("suite/test_a.py::test_gone",)}, "1 tests were deselected"),
        ({"skipped": ("suite/test_b.py",)}, "suite/test_b.py skipped itself"),
    ],
)
def test_a_partial_collection_is_refused(collection, baselines, change, words):
    with pytest.raises(prune_command.PruneRefusedError, match=words):
        said(dataclasses.replace(collection, **change), confirmed=True)
    assert recorded(baselines) == {"test_kept", "test_gone", "test_b", "test_c"}


def test_a_module_that_exists_but_was_not_collected_is_refused(collection, tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_b.py").write_text("", encoding="utf-8")
    with pytest.raises(prune_command.PruneRefusedError, match=r"suite/test_b.py exists but was not collected"):
        said(collection, confirmed=True)


def test_long_lists_are_cut():
    assert prune_command.some("abcdefg") == "a, b, c, d, e and 2 more"
