"""A folder of an older schema: the same verdicts before and after ``gpuperf migrate``, and nothing to record after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.migrations import SCHEMA_VERSION
from pytest_gpuperf.cli.command_line import main

OLDER = Path(__file__).parent / "older_baselines"
"""A suite with the baselines that a version of schema 3 recorded of it with NVRTC 13.0.88."""
GATE = ("--gpuperf", "--gpuperf-open=fail")


@pytest.fixture
def older(suite):
    shutil.copytree(OLDER / "baselines", suite.path / "baselines")
    shutil.copy(OLDER / "hog.cu", suite.path)
    suite.write("test_hog.py", (OLDER / "hog_suite.py.txt").read_text())
    (suite.path / "test_suite.py").unlink()
    return suite


def rows(result) -> list[str]:
    return [line for line in result.stdout.lines if line.startswith("  hog ")]


def test_verdicts_before_and_after_a_migration_are_the_same(older, capsys):
    before = older.run(*GATE)
    assert before.ret == 0
    assert len(rows(before)) == 3
    assert all(row.endswith("UNCHANGED") for row in rows(before))
    folder = str(older.path / "baselines")
    assert main(["migrate", "--baselines", folder]) == 0
    assert f"8 files rewritten in schema {SCHEMA_VERSION}: " in capsys.readouterr().out
    assert {json.loads(path.read_text())["schema"] for path in Path(folder).glob("sm_*/*.json")} == {SCHEMA_VERSION}
    assert main(["migrate", "--baselines", folder]) == 0
    assert "nothing was written" in capsys.readouterr().out
    after = older.run(*GATE)
    assert (after.ret, rows(after)) == (0, rows(before))
    older.run("--update-baselines").stdout.fnmatch_lines(["0 baselines written: all are up to date"])


def test_a_regression_against_older_records_is_red_and_explained(older):

    older.edit("test_hog.py", "{limit}", "{limit - 16 if limit == 40 else limit}")
    result = older.run(*GATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["hog  WORSE *", "*cause: register spilling (sm_*"])
