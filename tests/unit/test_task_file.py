"""What a child process is there for comes to it by a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.model.task import ConfirmTask, ProfileTask, flag_of, read_task


def test_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    for task in (
        ConfirmTask(folder=tmp_path, reading=7, writing=8),
        ProfileTask(folder=tmp_path, nodes=("test_a.py::test",), cache="warm", metrics=("a.sum",)),
    ):
        assert flag_of(task) == f"--gpuperf-task={tmp_path / 'task.json'}"
        assert read_task(tmp_path / "task.json") == task
    for text in ("", "{}", '{"type": "watch"}', '{"type": "confirm", "folder": ".", "reading": ""}'):
        (tmp_path / "task.json").write_text(text)
        with pytest.raises(ValueError, match="it holds no task"):
            read_task(tmp_path / "task.json")
