"""A run whose project has a record that no test comes to: what it tells of that."""

from __future__ import annotations

from baseline_samples import make_session
from record_samples import time_of
from run_samples import H200, MODULE, TEST, Run

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.results import Results
from pytest_gpuperf.session.missed_records import tell_vanished

OLD_TEST = "test_old"
NODE, OLD_NODE = f"{MODULE}::{TEST}", f"{MODULE}::{OLD_TEST}"


def old_key(test: str = OLD_TEST, workload: str = "copy") -> Key:
    return Key(module=MODULE, test=test, workload=workload)


def add_time(run: Run, at: Key) -> None:
    run.store.write(Update(time={(H200.slug, at): time_of()}, sessions=[make_session(id="s1")]))


def told(run: Run, *tests: TestEvidence, status: int = 0, tests_run: int = 1) -> Outcome:
    outcome = Outcome()
    tell_vanished(run.session(status), Results.merged(tests, {}, tests_run), outcome)
    return outcome
