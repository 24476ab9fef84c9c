"""What a child process is there for comes to it by a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ChildTask, ConfirmTask, ProfileTask, SuspectPlace, read_task, write_task

KEYS = tuple(Key(module="test_a.py", test=test, workload=name) for test, name in [("test", "a"), ("test", "b")])
PLACES = (
    SuspectPlace(key=KEYS[0], kind="time"),
    SuspectPlace(key=KEYS[0], kind="host"),
    SuspectPlace(key=KEYS[1], kind="time"),
)


@pytest.mark.parametrize(
    "task",
    [
        ConfirmTask(folder=Path("left here"), places=PLACES),
        ProfileTask(folder=Path("left here"), nodes=("test_a.py::test",), cache="warm", metrics=("a.sum",)),
    ],
    ids=lambda task: type(task).__name__,
)
def test_a_task_is_read_as_it_was_written(task: ChildTask, tmp_path: Path) -> None:
    write_task(task, tmp_path / "task.json")
    assert read_task(tmp_path / "task.json") == task


def test_a_test_with_several_workloads_to_confirm_runs_once() -> None:
    assert ConfirmTask(folder=Path(), places=PLACES).nodes == ("test_a.py::test",)


def test_each_figure_to_confirm_has_a_file_of_its_own() -> None:
    task = ConfirmTask(folder=Path("left"), places=PLACES)
    assert task.files() == (Path("left/0.json"), Path("left/1.json"), Path("left/2.json"))
    assert task.confirms(KEYS[1])
    assert not task.confirms(Key(module="test_a.py", test="test", workload="c"))


@pytest.mark.parametrize("text", ["", "{}", '{"type": "watch"}', '{"type": "confirm", "folder": ".", "places": 1}'])
def test_a_file_without_a_task_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(text)
    with pytest.raises(ValueError, match="it holds no task"):
        read_task(tmp_path / "task.json")
