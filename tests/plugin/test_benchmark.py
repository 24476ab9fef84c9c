"""A suite of pytest-benchmark, with one more line in its conftest."""

from __future__ import annotations

from suite_under_test import RECORD, SIMULATED, Suite

BENCHMARKS = """
import pytest

@pytest.fixture
def launch(cuda_kernel, gpu):
    a = gpu.random(1024, seed=1)
    return cuda_kernel("work.cu", "work", options=["-DSTEPS=100"]).launch(8, 256, (a, gpu.empty_like(a), 1024))

@pytest.mark.benchmark(group="copies", min_rounds=3)
def test_call(benchmark, launch):
    def twice(times, *, more):
        for _ in range(times + more):
            launch()
        return "done"
    benchmark.extra_info["size"] = 1024
    assert benchmark(twice, 1, more=1) == "done"

def test_pedantic(benchmark, launch):
    made = []
    def prepare():
        made.append(len(made))
        return (made[-1],), {}
    def once(number):
        launch()
        return number
    assert benchmark.pedantic(once, setup=prepare, rounds=5, iterations=1, warmup_rounds=2) == made[-1]
"""


def test_it_is_gated_without_edits(suite: Suite) -> None:
    suite.write("conftest.py", f'{SIMULATED}\npytest_plugins = ["pytest_gpuperf.benchmark"]\n')
    suite.write("test_suite.py", BENCHMARKS)
    suite.run("--strict-markers").assert_outcomes(passed=2)
    suite.run(*RECORD).assert_outcomes(passed=2)
    result = suite.run("--gpuperf", "--gpuperf-time=all", "--gpuperf-open=warn")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*twice*", "*once*"])
