"""Where the evidence of a revision is kept for a while."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_gpuperf.session import compare_revision


def test_evidence_of_long_ago_goes_and_what_another_run_has_just_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path))
    place = tmp_path / "revisions"
    (place / "old").mkdir(parents=True)
    (place / "young").mkdir()
    (place / "removed").symlink_to(place / "nowhere")  # is listed, and not there when it is asked for its age
    os.utime(place / "old", (0, 0))
    made = compare_revision._new_folder()
    assert sorted(path.name for path in place.iterdir()) == sorted(["young", "removed", made.name])
