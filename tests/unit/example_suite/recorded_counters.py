"""A pytest plugin (``-p recorded_counters``): counters that were recorded on a GPU, for a run without one.

Every workload of the example suite gets those that ``tests/replays/counters`` has of it, and the GPU that is not there
the name of the one they were taken on.  Times are not to be had: a test ends where it first asks for one, as always
without a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_gpuperf.context.early_stop import CountersMissing
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.workload.measurement import Measurement

FILE = Path(__file__).parents[2] / "replays" / "counters" / "nvidia-h200.json"
OPTION = "--recorded-counters"


class Recording(NamedTuple):
    gpu: str
    """Model of the GPU, as baselines are called after it."""
    ncu: str
    counters: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By test, workload and metric; without those that ncu had no value for."""


def read(file: Path) -> Recording:
    """What ``benchmarks/record_claim_counters.py`` wrote."""
    content = json.loads(file.read_text(encoding="utf-8"))
    counters = {
        test: {
            workload: {
                metric: value for metric, value in zip(content["metrics"], values, strict=True) if value is not None
            }
            for workload, values in workloads.items()
        }
        for test, workloads in content["workloads"].items()
    }
    return Recording(content["gpu"], content["ncu"], counters)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, type=Path, default=FILE, metavar="FILE", help="the recording to replay")


@pytest.fixture(scope="session")
def recording(request: pytest.FixtureRequest) -> Recording:
    return read(request.config.getoption(OPTION))


@pytest.fixture(autouse=True)
def recorded_counters(request: pytest.FixtureRequest, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of this test's workloads, or ``CountersMissing``."""
    of_test = recording.counters.get(request.node.nodeid, {})

    def counters(measurement: Measurement) -> Mapping[str, float]:
        if measurement.name not in of_test:
            raise CountersMissing(f"{measurement.name} was not recorded: run benchmarks/record_claim_counters.py")
        return of_test[measurement.name]

    monkeypatch.setattr(Measurement, "counters", property(counters))
    monkeypatch.setattr(Gpu, "slug", recording.gpu, raising=False)
