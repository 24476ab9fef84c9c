"""The check of the timers against each other can fail: each bound is shown red.  And its kernels compile."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loaded_scripts import load_script

from pytest_gpuperf.device.timers import stream


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return load_script(Path(__file__).parents[3] / "benchmarks" / "device_time.py")


def readings(benchmark: ModuleType, cupti: float, graph: float, clock: float, cache: str = "warm") -> list[Any]:
    return [
        benchmark.Reading("loop", "cupti", cache, cupti, 0.01, clock),
        benchmark.Reading("loop", "graph", cache, graph, 0.01, clock),
    ]


@pytest.mark.parametrize(
    ("cupti", "graph", "clock", "cache"),
    [(10_850, 10_900, 10_900, "warm"), (2500, 2650, 2530, "warm"), (10_850, 10_990, 11_900, "cold")],
)
def test_readings_that_agree_pass(benchmark: ModuleType, cupti: float, graph: float, clock: float, cache: str) -> None:
    assert benchmark.failures(readings(benchmark, cupti, graph, clock, cache), 32.0) == []


@pytest.mark.parametrize(
    ("cupti", "graph", "clock", "words"),
    [
        (10_850, 10_900, 11_000, "CUPTI 10850 ns, in-kernel clock 11000 ns"),
        (10_850, 11_100, 10_850, r"graph 11100 ns is \+2.3% off"),
        (2500, 2750, 2500, r"graph 2750 ns is \+10.0% off"),
    ],
)
def test_each_bound_goes_red(benchmark: ModuleType, cupti: float, graph: float, clock: float, words: str) -> None:
    (message,) = benchmark.failures(readings(benchmark, cupti, graph, clock), 32.0)
    assert re.search(words, message)


def test_the_table_shows_each_reading(benchmark: ModuleType) -> None:
    text = benchmark.markdown(readings(benchmark, 10_850, 10_900, 10_900))
    assert "| loop | graph | warm | 10900.0 | 1.00% | 10900 |" in text


def test_the_kernels_compile(benchmark: ModuleType) -> None:
    core = pytest.importorskip("cuda.core")
    for source in (benchmark.SOURCE, stream._KERNELS):
        program = core.Program(source, "c++", core.ProgramOptions(arch="sm_90"))
        assert program.compile("cubin").code
