"""A suite of pytest-benchmark, with one more line in its conftest."""

from __future__ import annotations

import pytest
from suite_under_test import RECORD, SIMULATED, Suite

BENCHMARKS = """
import pytest

ROWS = [1 << 10, 1 << 12]

@pytest.fixture(params=ROWS, ids=lambda rows: f"{rows}_rows")
def frame(request, cuda_kernel, gpu):
    a = gpu.random(request.param, seed=1)
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    return kernel.launch(request.param // 256, 256, (a, gpu.empty_like(a), request.param))

def bench_apply(frame, times, *, more=0):
    for _ in range(times + more):
        frame()
    return "done"

@pytest.mark.benchmark(group="apply", min_rounds=3, warmup=True)
class TestApply:
    @pytest.mark.parametrize("times", [1, 3])
    def test_call(self, benchmark, frame, times):
        benchmark.extra_info["times"] = times
        assert benchmark(bench_apply, frame, times, more=1) == "done"
        assert benchmark.group == "apply"
        assert benchmark.name in benchmark.fullname

    def test_decorator(self, benchmark, frame):
        benchmark.group = "other"

        @benchmark
        def result():
            frame()
            return 5

        assert result == 5

def test_pedantic(benchmark, frame):
    made, gone = [], []

    def prepare():
        made.append(len(made))
        return (made[-1],), {"scale": 2}

    def once(number, scale):
        frame()
        return number * scale

    given = dict(setup=prepare, teardown=lambda number, scale: gone.append(number))
    assert benchmark.pedantic(once, rounds=5, iterations=1, warmup_rounds=2, **given) == 2 * made[-1]
    assert made == gone
    with pytest.raises(TypeError, match="rouds"):
        benchmark.pedantic(once, rouds=5)

def test_arguments(benchmark, frame):
    benchmark.pedantic(bench_apply, args=(frame, 1), kwargs={"more": 1}, rounds=3)

def test_rate(benchmark, frame):
    benchmark(bench_apply, frame, 4)
    assert benchmark.enabled and not benchmark.disabled
    seconds = benchmark.stats["mean"]
    assert seconds == benchmark.stats.stats.mean == benchmark.stats.stats.min
    benchmark.extra_info["GB/s"] = 8e-9 * frame.arguments[0].size / seconds
    assert 1e-6 < seconds < 1e-3
"""


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "pytest-benchmark"])
def test_it_is_gated_without_edits(suite: Suite, beside: bool) -> None:
    """The other plugin, where it is installed, leaves the fixture to the one of the conftest."""
    if beside:
        pytest.importorskip("pytest_benchmark")
    flags = ("--benchmark-disable-gc",) if beside else ("-p", "no:benchmark")
    suite.write("conftest.py", f'{SIMULATED}\npytest_plugins = ["pytest_gpuperf.benchmark"]\n')
    suite.write("test_suite.py", BENCHMARKS)
    said = suite.run("--strict-markers", *flags)
    said.assert_outcomes(passed=12, warnings=beside)
    assert ("--benchmark-disable-gc: no effect" in said.stdout.str()) == beside
    suite.run(*RECORD, *flags).assert_outcomes(passed=12)
    result = suite.run("--gpuperf", "--gpuperf-time=all", "--gpuperf-open=warn", *flags)
    result.assert_outcomes(passed=12)
    named = {one["key"]["workload"] for one in suite.judgements() if one["kind"] == "time"}
    assert named == {"bench_apply", "result", "once"}


def test_it_is_static_only_without_a_gpu(suite: Suite) -> None:
    """Assertions on results and times included."""
    suite.write("conftest.py", 'pytest_plugins = ["pytest_gpuperf.benchmark"]\n')
    suite.write("test_suite.py", BENCHMARKS)
    assert "12 static only" in suite.run("-p", "no:benchmark").stdout.str()
