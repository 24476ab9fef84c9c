"""The evidence of the last run: kept whole, found from below, refused when it is not what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.process import last_run
from pytest_gpuperf.process.last_run import LastRun, LastRunError

KEY = Key(module="test_a.py", test="test_a", workload="copy")


def run(date: str = "2026-01-01T00:00:00Z") -> LastRun:
    tests = (TestEvidence(module="test_a.py", test="test_a", workloads=(WorkloadEvidence(key=KEY),)),)
    return LastRun(schema=last_run.SCHEMA, date=date, plugin="0", baselines="/baselines", tests=tests)


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    last_run.keep(tmp_path, run())
    assert last_run.read(last_run.path_below(tmp_path)) == run()
    last_run.keep(tmp_path, run("2026-01-02T00:00:00Z"))
    assert last_run.read(last_run.path_below(tmp_path)).date == "2026-01-02T00:00:00Z"
    assert sorted(path.name for path in (tmp_path / ".gpuperf").iterdir()) == [".gitignore", "last-run.json"]


def test_a_run_from_above_the_repository_is_none_of_its_own(tmp_path: Path) -> None:
    last_run.keep(tmp_path, run())
    top, deep = tmp_path / "repository", tmp_path / "repository" / "a"
    deep.mkdir(parents=True)
    (top / ".git").mkdir()
    assert last_run.find(deep) is None
    last_run.keep(top, run())
    assert last_run.find(deep) == last_run.path_below(top)


def test_a_run_too_large_is_not_kept_and_the_one_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_run.keep(tmp_path, run())
    monkeypatch.setattr(last_run, "LARGEST_BYTES", 10)
    with pytest.raises(LastRunError, match="is not kept for gpuperf explain"):
        last_run.keep(tmp_path, run("2026-01-02T00:00:00Z"))
    with pytest.raises(LastRunError, match="larger than 10 bytes"):
        last_run.read(last_run.path_below(tmp_path))
    monkeypatch.undo()
    assert last_run.read(last_run.path_below(tmp_path)) == run()


@pytest.mark.parametrize("place", [".gpuperf", ".gpuperf/last-run.json", ".gpuperf/.gitignore"])
def test_nothing_is_written_through_a_link_that_a_repository_brings(tmp_path: Path, place: str) -> None:
    """A file is put in the place of the link; a folder that is one is refused."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("precious")
    link = tmp_path / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if place == ".gpuperf" else outside / "victim")
    if place == ".gpuperf":
        with pytest.raises(LastRunError, match=r"\.gpuperf is a link.*remove it"):
            last_run.keep(tmp_path, run())
    else:
        last_run.keep(tmp_path, run())
        assert last_run.read(last_run.path_below(tmp_path)) == run()
    assert [file.name for file in outside.iterdir()] == ["victim"]
    assert (outside / "victim").read_text() == "precious"
