"""The CUPTI timer against a simulated CUPTI: attribution, what is refused, what is left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_libcupti import SimulatedLibrary
from simulated_stream import CuptiError, SimulatedCupti, SimulatedStream, installed

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.timers.cupti import CuptiTimer, open_cupti
from pytest_gpuperf.device.timers.cupti_records import Records
from pytest_gpuperf.model.time_record import CacheMode


@pytest.fixture
def stream() -> SimulatedStream:
    return SimulatedStream()


@pytest.fixture
def cupti(stream: SimulatedStream) -> SimulatedCupti:
    return SimulatedCupti(stream)


@pytest.fixture
def timer(stream: SimulatedStream, cupti: SimulatedCupti) -> CuptiTimer:
    return CuptiTimer(stream, cupti, Records(cupti, SimulatedLibrary(cupti, records_per_buffer=7)))  # type: ignore[arg-type]


def kernel(stream: SimulatedStream, duration: float, name: str = "kernel") -> Callable[[], None]:
    return lambda: stream.kernel(duration, name)


def test_tick_and_overhead_are_measured(timer: CuptiTimer) -> None:
    assert timer.tick_ns == pytest.approx(32.0, abs=0.1)
    assert timer.overhead_ns == pytest.approx(-30, abs=33)  # the reference graph has its gaps of 30 ns


def test_slots_keep_their_order_and_each_drops_its_first_sample(timer: CuptiTimer, stream: SimulatedStream) -> None:
    first_is_slow = iter([64_000.0, 3200.0, 3200.0, 3200.0])
    slots = [Slot(lambda: stream.kernel(next(first_is_slow)), 3), Slot(kernel(stream, 6400.0), 2)]
    assert [[round(t, -2) for t in times] for times in timer.measure(slots, "cold")] == [[3200] * 3, [6400] * 2]


def test_a_sample_is_the_sum_of_all_that_a_run_launches(timer: CuptiTimer, stream: SimulatedStream) -> None:
    def run() -> None:
        stream.kernel(3200.0, "first")
        stream.flush_l2()  # a memset of the workload's own counts, the timer's flush does not
        stream.kernel(6400.0, "second")
        stream.kernel(6400.0, "second")

    (times,) = timer.measure([Slot(run, 4)], "cold")
    assert times == pytest.approx([3200 + 60_000 + 12_800] * 4, abs=130)
    (parts,) = timer.kernel_breakdown
    assert parts == pytest.approx({"first": 3200, "second": 12_800, "[memset]": 60_000}, abs=70)


def test_reset_runs_before_the_flush_of_every_sample_and_is_not_timed(
    timer: CuptiTimer, stream: SimulatedStream
) -> None:
    stream.log.clear()
    slot = Slot(kernel(stream, 3200.0), 2, reset=kernel(stream, 90_000.0, "reset"))
    (times,) = timer.measure([slot], "cold")
    assert stream.log == ["reset", "flush", "kernel"] * 3
    assert times == pytest.approx([3200.0] * 2, abs=32)


def elsewhere(stream: SimulatedStream, start_ns: float, end_ns: float) -> Callable[[], None]:
    """Work on another stream, from and to these times after the end of what the current stream has."""
    return lambda: stream.observer("elsewhere", stream.free_ns + start_ns, stream.free_ns + end_ns)


def test_work_on_another_stream_between_the_flushes_is_timed(timer: CuptiTimer, stream: SimulatedStream) -> None:
    def run() -> None:
        elsewhere(stream, 640.0, 3840.0)()
        stream.occupy(6400.0)  # waits for it

    assert timer.measure([Slot(run, 3)], "cold") == [[3200.0] * 3]


@pytest.mark.parametrize("name", ["backward", "flush"])
@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize("own", [(3200.0,), (3200.0, 1600.0), ()], ids=["before", "around", "behind"])
def test_what_another_thread_launches_for_a_sample_is_timed(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream, name: str, cache: CacheMode,
    own: tuple[float, ...],
) -> None:  # fmt: skip
    """As PyTorch launches the backward pass: CUPTI's tags are of the thread that pushed them."""

    def run() -> None:
        for before in own[:1]:
            stream.kernel(before)
        tags, cupti.pushed = cupti.pushed, []
        stream.kernel(6400.0, name)
        cupti.pushed = tags
        for behind in own[1:] or ((800.0,) if not own else ()):
            stream.kernel(behind)

    slot = Slot(run, 3, reset=kernel(stream, 700.0, "reset"))
    assert timer.measure([slot], cache) == [[sum(own or (800.0,)) + 6400.0] * 3]


def test_records_that_come_late_are_asked_for_again(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream
) -> None:
    cupti.hold_back = True
    assert len(timer.measure([Slot(kernel(stream, 3200.0), 3)], "cold")[0]) == 3
    assert cupti.flushes[-2:] == [0, 1]


def test_nothing_is_traced_after_a_measurement_even_a_failed_one(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream
) -> None:
    assert cupti.enabled == set()

    def fails() -> None:
        raise KeyError("the user's own")

    with pytest.raises(KeyError):
        timer.measure([Slot(fails, 3)], "cold")
    assert cupti.enabled == set()
    assert cupti.pushed == []


def test_a_lost_sample_is_an_error(timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream) -> None:
    kernels = iter(range(100))
    cupti.lose = lambda record: record.kind == 10 and next(kernels) == 4
    with pytest.raises(TimerError, match="no GPU work for 1 of 11 samples"):
        timer.measure([Slot(kernel(stream, 3200.0), 10)], "cold")


def test_dropped_records_are_an_error(timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream) -> None:
    cupti.dropped = 3
    with pytest.raises(TimerError, match="dropped 3 activity records"):
        timer.measure([Slot(kernel(stream, 3200.0), 10)], "cold")


def test_records_without_a_valid_time_are_an_error(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream
) -> None:
    cupti.invalid = True
    with pytest.raises(TimerError, match="no valid time for 'kernel'"):
        timer.measure([Slot(kernel(stream, 3200.0), 2)], "cold")


def test_a_failure_of_cupti_itself_names_other_profilers(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: int) -> None:
        raise CuptiError("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    monkeypatch.setattr(cupti, "activity_enable", refuse)
    with pytest.raises(TimerError, match=r"MULTIPLE_SUBSCRIBERS.*ncu, nsys"):
        timer.measure([Slot(kernel(stream, 3200.0), 2)], "cold")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("another copy of the library", "no GPU work"),
        ("refused callbacks", "status 15"),
        ("no library", "none of  is loaded"),
        ("lost tags", "no GPU work"),
        ("another record", "its binding expects .*activity_memset_dtype"),
    ],
)
def test_opening_where_cupti_does_not_work_says_why(
    stream: SimulatedStream, cupti: SimulatedCupti, monkeypatch: pytest.MonkeyPatch, trouble: str, words: str
) -> None:
    library = SimulatedLibrary(cupti)
    library.deaf = trouble == "another copy of the library"
    library.register_status = 15 if trouble == "refused callbacks" else 0
    cupti.lose = lambda record: trouble == "lost tags" and record.kind == 39
    if trouble == "another record":
        monkeypatch.delattr(SimulatedCupti, "activity_memset4_dtype")
    with (
        installed(monkeypatch, cupti, None if trouble == "no library" else library),
        pytest.raises(TimerError, match=words) as caught,
    ):
        open_cupti(stream)  # type: ignore[arg-type]
    assert "--gpuperf-timer=graph" in str(caught.value)


def test_records_of_a_failed_measurement_never_count_for_another_timer(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream
) -> None:
    runs = iter(range(100))

    def fails() -> None:
        stream.kernel(640_000.0)
        if next(runs) == 3:
            raise KeyError("the user's own")

    other = CuptiTimer(stream, cupti, timer._records)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        timer.measure([Slot(fails, 9)], "cold")
    assert cupti.records  # still in a buffer
    (times,) = other.measure([Slot(kernel(stream, 3200.0), 9)], "cold")
    assert times == pytest.approx([3200.0] * 9, abs=32)


@pytest.mark.parametrize(("lost_ns", "late_ns", "pauses"), [
    (2_400_000.0, 0.0, [2_400_000.0]), (190_000.0, 0.0, []), (2_400_000.0, 3_000_000.0, []),
], ids=["another process's turn", "short", "late host"])  # fmt: skip
def test_a_pause_of_the_gpu_with_work_in_its_queue_is_noticed(
    timer: CuptiTimer, stream: SimulatedStream, lost_ns: float, late_ns: float, pauses: list[float]
) -> None:
    slot = Slot(kernel(stream, 3200.0), 3)
    timer.measure([slot], "cold")
    assert timer.pauses_ns == ()
    flushes = iter(range(10))
    flush = stream.flush_l2

    def elsewhere_before_the_third() -> None:
        if next(flushes) == 2:
            stream.free_ns += lost_ns
            stream.now_ns += late_ns
        flush()

    stream.flush_l2 = elsewhere_before_the_third  # type: ignore[method-assign]
    timer.measure([slot], "cold")
    assert timer.pauses_ns == pytest.approx(pauses, abs=50)
