"""The graph timer against a simulated stream whose kernels have known durations."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from simulated_libcupti import SimulatedLibrary
from simulated_stream import GRAPH_LAUNCH, PAIR, SimulatedCupti, SimulatedStream, installed, opened

from pytest_gpuperf.device.device_errors import TimerError, TimerUnavailable
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.timers.graph import GraphTimer
from pytest_gpuperf.device.timers.stream import LONGEST_DELAY_NS, TRIES_AT_LONGEST, QueuedPairs
from pytest_gpuperf.model.time_record import CacheMode


@pytest.fixture
def stream() -> SimulatedStream:
    return SimulatedStream()


def kernel(stream: SimulatedStream, duration: float) -> Callable[[], None]:
    return lambda: stream.kernel(duration)


@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize("duration", [2500.0, 10_850.0, 101_600.0, 1_124_500.0])
def test_times_are_true(stream: SimulatedStream, duration: float, cache: CacheMode) -> None:
    timer = GraphTimer(stream)
    stream.flushes = 0
    (times,) = timer.measure([Slot(kernel(stream, duration), 5)], cache)
    assert times == pytest.approx([duration] * 5, abs=100)
    assert stream.flushes == (6 if cache == "cold" else 0)


def test_tick_and_overhead_are_measured(stream: SimulatedStream) -> None:
    timer = GraphTimer(stream)
    assert timer.tick_ns == pytest.approx(32.0, abs=0.1)
    assert timer.overhead_ns == pytest.approx(PAIR + GRAPH_LAUNCH, abs=64)


def waits(stream: SimulatedStream) -> None:
    stream.kernel(3000.0)
    stream.synchronize()


def goes_on_elsewhere(stream: SimulatedStream) -> None:
    stream.kernel(5000.0)
    stream.elsewhere_ns = stream.now_ns + 2e6


@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize(("run", "samples", "words"), [
    (lambda stream: None, 3, "another stream"),
    (waits, 3, "captured"),
    (waits, 1, r"20 ms: the work waits for the GPU.*take synchronisation out"),
    (goes_on_elsewhere, 6, "still runs after the timed stream is done"),
])  # fmt: skip
def test_a_workload_of_which_a_part_would_be_timed_is_refused_in_bounded_time(
    stream: SimulatedStream, run: Callable[[SimulatedStream], None], samples: int, words: str, cache: CacheMode
) -> None:
    timer = GraphTimer(stream)
    before = stream.now_ns
    with pytest.raises(TimerError, match=words):
        timer.measure([Slot(lambda: run(stream), samples, dropped=int(samples > 1))], cache)
    assert stream.now_ns - before < (TRIES_AT_LONGEST + 2) * LONGEST_DELAY_NS


def test_coarse_end_is_read_finely_by_several_graphs(stream: SimulatedStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are 224 ns, as on an H200, and begin elsewhere in each graph."""
    timer, capture, phases = GraphTimer(stream), stream.capture, itertools.cycle(range(0, 224, 32))

    def elsewhere(work: Callable[[], None], times: int = 1) -> Any:
        captured, phase = capture(work, times), next(phases)
        captured._kernels = [(name, 224.0 * math.ceil((ns + phase) / 224)) for name, ns in captured._kernels]
        return captured

    monkeypatch.setattr(stream, "capture", elsewhere)
    times = timer.measure([Slot(kernel(stream, 20_000.0 + 64 * step), 21) for step in range(8)], "cold")
    means = [statistics.fmean(of_slot) for of_slot in times]
    assert [mean - means[0] for mean in means] == pytest.approx([64.0 * step for step in range(8)], abs=40)


@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize(("samples", "graphs"), [(3, 1), (4, 2), (12, 4)])
def test_run_is_called_for_each_graph(stream: SimulatedStream, cache: CacheMode, samples: int, graphs: int) -> None:
    """What a run does in Python is done at capture; graphs whose captures differ are replayed in turns."""
    timer, lengths, resets = GraphTimer(stream), itertools.count(1), []

    def longer_each_time() -> None:
        stream.kernel(10_000.0 * next(lengths))

    (times,) = timer.measure([Slot(longer_each_time, samples, lambda: resets.append(len(stream.log)))], cache)
    assert next(lengths) == 1 + 1 + graphs, "called to load it, and for each of the graphs"
    assert len(resets) == 1 + samples
    turns = [2 + index % graphs for index in range(1, 1 + samples)]
    assert times == pytest.approx([10_000.0 * turn for turn in turns], abs=100)


def test_graphs_stay_within_a_thousand_nodes(stream: SimulatedStream, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, capture, captured = GraphTimer(stream), stream.capture, []

    def watched(work: Callable[[], None], times: int = 1) -> Any:
        captured.append(capture(work, times))
        return captured[-1]

    def many() -> None:
        for _ in range(300):
            stream.kernel(20.0)

    monkeypatch.setattr(stream, "capture", watched)
    timer.measure([Slot(many, 2)], "warm")
    assert [graph.nodes for graph in captured] == [300, 900]


def test_a_workload_slow_to_enqueue_is_timed_behind_a_longer_delay(stream: SimulatedStream) -> None:
    pairs = QueuedPairs(stream)

    def slow() -> None:
        stream.now_ns += 200_000
        stream.kernel(5000.0)

    readings = [pairs.read(slow, cold=True) for _ in range(5)]
    assert readings == pytest.approx([readings[0]] * 5, abs=100)
    assert stream.log.count("flush") == 6  # only the first sample had to be taken twice


def test_one_hiccup_of_the_host_behind_the_longest_delay_is_no_reason_to_refuse(stream: SimulatedStream) -> None:
    pairs = QueuedPairs(stream)
    hiccups = iter([LONGEST_DELAY_NS, 1.1 * LONGEST_DELAY_NS])

    def work() -> None:
        stream.now_ns += next(hiccups, 0.0)
        stream.kernel(5000.0)

    assert pairs.read(work) == pytest.approx(5000, rel=0.5)


def test_a_host_that_is_late_to_see_the_end_is_no_work_elsewhere(stream: SimulatedStream) -> None:
    """As a busy one is in most tries, but not in all."""
    runs = itertools.count()

    def run() -> None:
        stream.kernel(5000.0)
        stream.elsewhere_ns = stream.now_ns + 1e6 * (next(runs) < 6)

    (times,) = GraphTimer(stream).measure([Slot(run, 6)], "cold")
    assert times == pytest.approx([5000.0] * 6, abs=100)


def test_the_gpu_is_woken_before_anything_is_calibrated() -> None:
    """An idle GPU's slow clock must not be taken for the rate of the delay, nor for an overhead."""
    stream = SimulatedStream()
    stream.rate = lambda now: 3.0 if now < 5e6 else 0.5
    assert QueuedPairs(stream)._ns_per_cycle == pytest.approx(0.5, rel=0.1)


def test_best_or_named_timer_is_opened(stream: SimulatedStream, monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, spin = SimulatedCupti(stream), stream.spin
    with installed(monkeypatch, cupti, SimulatedLibrary(cupti)):
        assert opened(monkeypatch, stream).name == "cupti"
    with installed(monkeypatch, None):
        assert opened(monkeypatch, stream).name == opened(monkeypatch, stream, "graph").name == "graph"
        missing = "the cupti timer is not available: cupti-python cannot be imported"
        with pytest.raises(TimerUnavailable, match=missing):
            opened(monkeypatch, stream, "cupti")
        stream.spin = lambda cycles: spin(min(cycles, 4000))  # type: ignore[method-assign]
        late = "the graph timer is not available: the host took .* ms to enqueue the work.*unset CUDA_LAUNCH_BLOCKING"
        with pytest.raises(TimerUnavailable, match=rf"^{missing}.*; {late}"):
            opened(monkeypatch, stream)
