"""The check of the timers against each other can fail: each bound is shown red.  And its kernels compile."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loaded_scripts import load_script

from pytest_gpuperf.device.timers import stream


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / "device_time.py"
    return load_script(path)


def a_row(benchmark: ModuleType, cupti: float = 10_850.0, graph: float = 10_900.0, **changes: Any) -> Any:
    readings = {"cupti": cupti, "graph": graph, "events": cupti, "raw pair": cupti, "raw batch": cupti}
    fields = {"span_ns": 10_200.0, "table_ns": 10_850.0, "sized": True, **changes}
    return benchmark.Row("compute", lambda: None, warm=readings, cold=dict(readings), **fields)


def test_readings_that_agree_pass(benchmark: ModuleType) -> None:
    assert benchmark.failures([a_row(benchmark)], 650.0, True) == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"span_ns": 10_000.0}, "in-kernel clock 10650"),
        ({"table_ns": 11_000.0}, "table 11000"),
        ({"graph": 11_000.0}, "graph 11000 ns is +1.4% off"),
        ({"cupti": 2500.0, "graph": 2750.0, "span_ns": 1850.0, "table_ns": 2500.0}, "graph 2750 ns is +10.0% off"),
    ],
)
def test_each_bound_goes_red(benchmark: ModuleType, row: dict[str, float], words: str) -> None:
    (message,) = benchmark.failures([a_row(benchmark, **row)], 650.0, True)
    assert words in message


def test_the_table_binds_only_on_its_own_gpu(benchmark: ModuleType) -> None:
    assert benchmark.failures([a_row(benchmark, table_ns=11_000.0)], 650.0, False) == []


def test_graphs_may_be_8_percent_off_below_10_us(benchmark: ModuleType) -> None:
    row = a_row(benchmark, cupti=2500.0, graph=2650.0, span_ns=1850.0, table_ns=2500.0)
    assert benchmark.failures([row], 650.0, True) == []


def test_tables_show_times_and_deviations(benchmark: ModuleType) -> None:
    text = benchmark.markdown([a_row(benchmark)], "# Heading")
    assert "| compute | 10.85 | 10.20 | 10.85 | 10.90 (+0.5%) |" in text
    assert text.count("| compute |") == 2


def test_the_kernels_compile(benchmark: ModuleType) -> None:
    core = pytest.importorskip("cuda.core")
    for source in (benchmark.SOURCE, stream._KERNELS):
        program = core.Program(source, "c++", core.ProgramOptions(arch="sm_90"))
        assert program.compile("cubin").code
