"""What a child process is there for comes to it by a file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask, ProfileTask, SuspectPlace, flag_of, read_task

KEYS = tuple(Key(module="test_a.py", test="test", workload=name) for name in "ab")
KINDS = ((KEYS[0], "time"), (KEYS[0], "host"), (KEYS[1], "time"))
PLACES = tuple(SuspectPlace(key=key, kind=kind) for key, kind in KINDS)
CONFIRM = ConfirmTask(folder=Path("left"), places=PLACES)


def test_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    for task in (
        msgspec.structs.replace(CONFIRM, folder=tmp_path),
        ProfileTask(folder=tmp_path, nodes=("test_a.py::test",), cache="warm", metrics=("a.sum",)),
    ):
        assert flag_of(task) == f"--gpuperf-task={tmp_path / 'task.json'}"
        assert read_task(tmp_path / "task.json") == task
    for text in ("", "{}", '{"type": "watch"}', '{"type": "confirm", "folder": ".", "places": 1}'):
        (tmp_path / "task.json").write_text(text)
        with pytest.raises(ValueError, match="it holds no task"):
            read_task(tmp_path / "task.json")


def test_figures_to_confirm_have_files_of_their_own_and_their_test_runs_once() -> None:
    assert CONFIRM.nodes == ("test_a.py::test",)
    assert CONFIRM.files() == (Path("left/0.json"), Path("left/1.json"), Path("left/2.json"))
    assert CONFIRM.confirms(KEYS[1])
    assert not CONFIRM.confirms(Key(module="test_a.py", test="test", workload="c"))
