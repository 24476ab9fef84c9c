"""Which disturbed workloads an update takes again, and what takes their place."""

from __future__ import annotations

from pytest_gpuperf.model.evidence import Identity, Key, TimeRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.update.retake import disturbed_in, with_fit_rounds

NOISE = ("noise",)


def work(name: str, time_ns: float | None, *disturbances: str) -> WorkloadEvidence:
    time = None
    if time_ns is not None:
        taken = Round(
            session="", process=0, samples=30, midmean=time_ns, median=time_ns, quantiles=(time_ns,) * 5,
            minimum=time_ns, maximum=time_ns, rho1=0.0, drift=0.0, modes=1,
        )  # fmt: skip
        time = TimeRecord(identity=Identity(code="", launch=""), timer="graph", cache="cold", rounds=(taken,))
    return WorkloadEvidence(key=Key("test_a.py", "test_a", name), time=time, disturbances=disturbances)


def of(*works: WorkloadEvidence) -> tuple[TestEvidence, ...]:
    return (TestEvidence(module="test_a.py", test="test_a", workloads=works),)


def test_only_disturbed_workloads_that_are_recorded_are_taken_again() -> None:
    tests = of(work("fit", 1.0), work("noisy", 1.0, "noise"), work("unasked", 1.0, "noise"))
    keys = [Key("test_a.py", "test_a", name) for name in ("fit", "noisy")]
    assert disturbed_in(tests, keys) == (keys[1],)


def test_fit_rounds_replace_disturbed_ones_and_no_others() -> None:
    before = of(
        work("fit", 1.0), work("noisy", 2.0, "noise"), work("noisier", 3.0, "noise"), work("lost", 4.0, "noise")
    )
    again = of(work("fit", 5.0), work("noisy", 6.0), work("noisier", 7.0, "noise"), work("lost", None))
    (found,) = with_fit_rounds(before, again)
    assert [one.time.rounds[0].midmean for one in found.workloads if one.time] == [1.0, 6.0, 3.0, 4.0]
    assert [one.disturbances for one in found.workloads] == [(), (), NOISE, NOISE]
