"""What records long launches on a GPU, on the simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded_scripts import load_script
from simulated_gpu import SimulatedGpu

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield load_script(BENCHMARKS / "long_launches.py")


@pytest.fixture
def bench(script, monkeypatch):
    monkeypatch.setattr(script, "LENGTHS_MS", (1,))
    monkeypatch.setattr(script, "FLOATS", 1 << 20)
    gpu = SimulatedGpu(slowdown=300.0)
    return script.Bench(gpu, gpu.timer())


def everything(script):
    return script.Chosen(("loop", "copy"), script.LENGTHS_MS, 50)


def test_times_of_single_launches_are_recorded(script, bench):
    found = script.record(bench, 0.5, everything(script))
    assert set(found) == {"loop 1 ms", "copy 1 ms"}
    assert all(len(times) >= 8 and min(times) > 0 for times in found.values())


def test_verdicts_name_their_cell_and_count_launches(script, bench):
    lines = script.verdicts(bench, 5.0, everything(script)._replace(places=(1,)))
    assert {line["kernel"] for line in lines} == {"loop 1 ms", "copy 1 ms"}
    assert all(line["long"] and line["launches"] == 8 * sum(line["blocks"]) for line in lines)
