"""Migration sets the version itself, so it ends whatever its steps say of it."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.baselines.migrations import migrate


def test_each_step_is_taken_once_and_the_version_is_set_behind_it() -> None:
    taken: list[int] = []

    def step(raw: dict[str, Any]) -> dict[str, Any]:
        assert len(taken) < 2, "a step without end"
        taken.append(raw["schema"])
        return {**raw, "schema": 0}

    assert migrate({"schema": 3}, steps={3: step, 4: step}, current=5) == {"schema": 5}
    assert taken == [3, 4]
