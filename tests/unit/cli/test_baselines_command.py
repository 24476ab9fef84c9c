"""What ``gpuperf baselines`` lists, moves and removes."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import NVRTC, make_key, make_session, make_static, static_update, time_update

from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.cli import command_line

MODULE = "example_suite/test_transpose.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = BaselineStore(tmp_path / "baselines")
    other = make_key("test_other", "k", "example_suite/test_other.py")
    keys = {("sm_90", NVRTC, make_key()), ("sm_80", NVRTC, other), ("sm_90", "nvrtc 12.9.86", other)}
    store.write(Update(static={key: make_static() for key in keys}))
    store.write(time_update(make_session()))
    return store.root


@pytest.fixture
def say(root: Path, capsys: pytest.CaptureFixture[str]):
    def said(*words: str, status: int = 0) -> str:
        assert command_line.main(["baselines", *words, "--baselines", str(root)]) == status
        written = capsys.readouterr()
        return written.err if status and written.err else written.out

    return said


def test_targets_and_compilers_are_listed_with_their_workloads(say) -> None:
    assert say() == (
        f"nvidia-h200: 1 workload\nsm_80 {NVRTC}: 1 workload\nsm_90 nvrtc 12.9.86: 1 workload\n"
        f"sm_90 {NVRTC}: 1 workload\n"
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (MODULE, [f"{MODULE}::test_transpose [padded]: sm_90 {NVRTC}, nvidia-h200"]),
        ("sm_80", ["example_suite/test_other.py::test_other [k]: sm_80 nvrtc 13.0.88, sm_90 nvrtc 12.9.86"]),
        ("nvrtc 12.9.86", ["example_suite/test_other.py::test_other [k]: sm_80 nvrtc 13.0.88, sm_90 nvrtc 12.9.86"]),
        ("none.py", []),
    ],
)
def test_records_are_listed_by_what_they_are_of(say, name: str, lines: list[str]) -> None:
    assert say("list", name).splitlines() == lines


def test_records_are_moved_and_removed(say, root: Path) -> None:
    said = say("mv", f"{MODULE}::test_transpose", f"{MODULE}::test_new")
    assert f"moved  sm_90: {MODULE}::test_transpose [padded] -> {MODULE}::test_new [padded]\n" in said
    assert said.endswith(f"Commit {root}.\n")
    assert f"removed  nvidia-h200: {MODULE}::test_new [padded]\n" in say("rm", MODULE)
    assert "removed  sm_80: " in say("rm", "sm_80")
    assert BaselineStore(root).targets() == ("sm_90",)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["mv", "a.py"], "mv takes OLD NEW: see gpuperf baselines --help"), (["rm"], "rm takes one NAME"),
        (["list", "a", "b"], "list takes one NAME or none"), (["rm", "none.py"], "there is no such record"),
        (["mv", MODULE, "example_suite/test_other.py::x"], "are not of one kind"),
    ],
)  # fmt: skip
def test_a_word_too_few_or_a_name_that_is_none_is_refused(say, words: list[str], problem: str) -> None:
    assert problem in say(*words, status=1)


def test_a_move_overwrites_nothing(say, root: Path) -> None:
    BaselineStore(root).write(static_update(key=make_key("test_new")))
    words = ["mv", f"{MODULE}::test_transpose", f"{MODULE}::test_new"]
    assert "has a record of its own: remove it first" in say(*words, status=1)
