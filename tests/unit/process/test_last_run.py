"""The evidence of the last run: kept whole, found from below, refused when it is not what was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process import last_run

RUN = b'{"schema":5}'


def test_a_run_from_above_the_repository_is_none_of_its_own(tmp_path: Path) -> None:
    last_run.keep(tmp_path, RUN)
    top, deep = tmp_path / "repository", tmp_path / "repository" / "a"
    deep.mkdir(parents=True)
    (top / ".git").mkdir()
    assert last_run.find(deep) is None
    last_run.keep(top, RUN)
    assert last_run.find(deep) == top / last_run.FOLDER / last_run.FILE


def test_reports_of_ncu_stay_as_far_as_a_regression_is_in_them_and_there_is_room(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("green", "red", "large")]
    works = []
    for file, verdict in zip(files, (Verdict.UNCHANGED, Verdict.WORSE, Verdict.WORSE), strict=True):
        file.write_text(file.name)
        key = Key(module="test_a.py", test="test_a", workload=file.name)
        judged = Judgement(key=key, target="nvidia-h200", kind="counters", verdict=verdict)
        works.append(WorkloadEvidence(key=key, judgements=(judged,), ncu_report=str(file)))
    os.truncate(files[-1], last_run.MOST_BYTES)
    evidence = [TestEvidence(module="test_a.py", test="test_a", workloads=tuple(works))]
    ((test),) = last_run.keep_ncu_reports(tmp_path, evidence)
    kept = ".gpuperf/counters-1.ncu-rep"
    assert [work.ncu_report for work in test.workloads] == ["", kept, ""]
    assert (tmp_path / kept).read_text() == "red"
    assert last_run.keep_ncu_reports(tmp_path, []) == []
    assert not (tmp_path / kept).exists()


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
        with pytest.raises(GpuperfError, match=r"\.gpuperf is a link.*remove it"):
            last_run.keep(tmp_path, RUN)
    else:
        last_run.keep(tmp_path, RUN)
        assert (tmp_path / last_run.FOLDER / last_run.FILE).read_bytes() == RUN
    assert [file.name for file in outside.iterdir()] == ["victim"]
    assert (outside / "victim").read_text() == "precious"
