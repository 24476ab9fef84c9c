"""A gated run on a machine with a GPU, and one without."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_samples import COMPILER, MODULE, TEST, Run, key, static_record

from pytest_gpuperf.baselines.store import Update
from pytest_gpuperf.results import Ended


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.fixture
def without_gpu(tmp_path: Path) -> Run:
    return Run(tmp_path, has_gpu=False)


@pytest.fixture
def gated(run: Run) -> Run:
    """A strict run of the whole project that has come to its end; the test of a record is gone."""
    run.with_options(open="fail")
    run.store.write(Update(static={("sm_90", COMPILER, key(test="test_old")): static_record()}))
    run.collected(TEST).ends[f"{MODULE}::{TEST}"] = Ended("passed")
    return run
