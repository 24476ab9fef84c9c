"""The session of an update, made of those of its recording processes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from record_samples import Walked, time_of

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.model.evidence import Key, Session
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.update.record import ProcessRecord, rounds_of
from pytest_gpuperf.update.select import merge


def process(index: int, canaries: Mapping[str, float]) -> ProcessRecord:
    session = Session(
        id=f"session-{index}", date="2026-11-22T10:00:00Z", gpu="NVIDIA H200", uuid="GPU-1", driver="580.1",
        cuda="13.0", toolchain="nvrtc 13.0.88", cupy="14.2", timer="cupti", tick_ns=32.0, overhead_ns=0.0,
        canaries=dict(canaries),
    )  # fmt: skip
    return ProcessRecord(index=index, session=session, device=nominal_facts("sm_90"), tests=())


@pytest.fixture
def options(pytestconfig: pytest.Config) -> Options:
    from pytest_gpuperf.context import stash

    return pytestconfig.stash[stash.OPTIONS]


def test_a_canary_s_time_is_the_median_of_the_processes(options: Options) -> None:
    records = [process(0, {"fma": 300.0}), process(1, {"fma": 330.0, "copy": 16.0}), process(2, {"fma": 301.0})]
    session, _ = merge(records, (), options)
    assert session.canaries == {"fma": 301.0, "copy": 16.0}
    assert (session.id, session.processes) == ("session-0", 3)


@pytest.mark.parametrize(("rounds", "processes", "shares"), [(10, 5, [2] * 5), (7, 3, [3, 2, 2]), (2, 3, [1, 1, 1])])
def test_processes_share_the_rounds_as_evenly_as_there_is(rounds: int, processes: int, shares: list[int]) -> None:
    options = Options(rounds=rounds, processes=processes)
    assert [rounds_of(options, index) for index in range(processes)] == shares


def test_what_processes_found_is_looked_through_once_however_many_workloads_are_wanted(options: Options) -> None:
    works = [WorkloadEvidence(key=Key("test_k.py", f"test_k[{n}]", "k"), time=time_of(1000.0)) for n in range(50)]
    tests = Walked(TestEvidence(module="test_k.py", test=one.key.test, workloads=(one,)) for one in works)
    record = msgspec.structs.replace(process(0, {}), tests=tests)
    _, recorded = merge([record], works, options)
    assert [one.key for one in recorded if not one.refused] == [one.key for one in works]
    assert tests.times <= 2
