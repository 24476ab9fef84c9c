"""A machine profile that is none of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def profile_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "profiles" / "machine.json"
    monkeypatch.setenv("GPUPERF_MACHINE_PROFILE", str(file))
    return file
