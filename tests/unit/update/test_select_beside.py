"""Figures beside the time that an update takes: by verdict, and times of the CPU from the recording processes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from record_samples import Walked

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.beside_figures import Beside, HostTime
from pytest_gpuperf.model.evidence import Identity, Key, TimeRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.update.record import ProcessRecord
from pytest_gpuperf.update.select_beside import figures_of, recorded_beside, wanted_beside

KEY = Key(module="test_a.py", test="test_a", workload="work")
GPU = "nvidia-h200"
FOUND = Beside(memory_bytes=2048, accuracy=1.5, host=HostTime(ratios=(0.5,), time_ns=900.0, cpu="c", made_by="p"))


def test_of(beside: Beside, *judged: tuple[EvidenceKind, Verdict]) -> TestEvidence:
    judgements = tuple(Judgement(key=KEY, target=GPU, kind=kind, verdict=verdict) for kind, verdict in judged)
    work = WorkloadEvidence(key=KEY, beside=beside, judgements=judgements)
    return TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))


test_of.__test__ = False  # type: ignore[attr-defined]


def process(ratio: float, beside: Beside | None = None) -> ProcessRecord:
    host = msgspec.structs.replace(FOUND.host, ratios=(ratio,), time_ns=1000 * ratio)  # type: ignore[type-var]
    found = test_of(Beside(host=host) if beside is None else beside)
    return ProcessRecord(index=0, session=None, device=None, tests=(found,))  # type: ignore[arg-type]


def found_by(records: Iterable[ProcessRecord]) -> list[WorkloadEvidence]:
    return [work for one in records for test in one.tests for work in test.workloads]


def record(beside: Beside | None = None) -> TimeRecord:
    return TimeRecord(identity=Identity(code="", launch="callable"), timer="cupti", cache="cold", rounds=(),
                      beside=beside)  # fmt: skip


@pytest.mark.parametrize(("mode", "taken"), [
    ("new", ("accuracy",)), ("changed", ("memory", "accuracy")), ("all", ("memory", "accuracy", "host")),
])  # fmt: skip
def test_an_update_takes_what_its_mode_takes(mode: str, taken: tuple[str, ...]) -> None:
    test = test_of(FOUND, ("memory", Verdict.WORSE), ("accuracy", Verdict.NEW), ("host", Verdict.SAME))
    (found,) = wanted_beside([test], Options(update=mode))
    assert found.kinds == taken
    assert found.wants_processes == ("host" in taken)


def test_nothing_is_taken_of_what_the_test_does_not_ask_for() -> None:
    test = test_of(Beside(), ("memory", Verdict.NOT_MEASURED), ("time", Verdict.SLOWER))
    assert wanted_beside([test], Options(update="all")) == []


def test_exact_figures_are_of_this_run_and_times_of_every_recording_process() -> None:
    (taken,) = wanted_beside([test_of(FOUND, ("memory", Verdict.NEW), ("host", Verdict.NEW))], Options(update="new"))
    found = figures_of(taken, found_by([process(0.5), process(0.6), process(0.7)]), 3)
    assert isinstance(found, Beside)
    assert (found.memory_bytes, found.accuracy) == (2048, None)
    assert found.host is not None
    assert (found.host.ratios, found.host.time_ns) == ((0.5, 0.6, 0.7), 600.0)


def test_a_time_that_a_recording_process_lacks_is_refused() -> None:
    (taken,) = wanted_beside([test_of(FOUND, ("host", Verdict.NEW))], Options(update="new"))
    records = [process(0.5), process(0.6, Beside())]
    assert figures_of(taken, found_by(records), 2) == "its host time was not taken in every recording process"
    update, (row,) = recorded_beside([taken], records, {(GPU, KEY): record()}, ())
    assert (update, row.refused) == ({}, "its host time was not taken in every recording process")


def test_what_processes_found_is_looked_through_once_however_many_figures_are_taken() -> None:
    taken = wanted_beside([test_of(FOUND, ("host", Verdict.NEW))] * 20, Options(update="new"))
    records = [msgspec.structs.replace(one, tests=Walked(one.tests)) for one in (process(0.5), process(0.6))]
    update, _ = recorded_beside(taken, records, {(GPU, KEY): record()}, ())
    assert update.keys() == {(GPU, KEY)}
    assert max(one.tests.times for one in records) <= 2  # type: ignore[attr-defined]


def test_a_row_shows_the_record_with_what_it_keeps() -> None:
    (taken,) = wanted_beside([test_of(FOUND, ("memory", Verdict.WORSE))], Options(update="changed"))
    old = record(Beside(memory_bytes=1024, host=FOUND.host))
    update, (row,) = recorded_beside([taken], [], {(GPU, KEY): old}, ())
    assert update == {(GPU, KEY): Beside(memory_bytes=2048)}
    assert isinstance(row.after, TimeRecord)
    assert row.after.beside == Beside(memory_bytes=2048, host=FOUND.host)
    assert recorded_beside([taken], [], {(GPU, KEY): old}, [(GPU, KEY)]) == (update, [])


def test_a_workload_without_a_time_on_record_is_refused() -> None:
    (taken,) = wanted_beside([test_of(FOUND, ("memory", Verdict.NEW))], Options(update="new"))
    update, (row,) = recorded_beside([taken], [], {(GPU, KEY): None}, ())
    assert (update, row.refused) == ({}, "it needs a time on record, and this one has none")
