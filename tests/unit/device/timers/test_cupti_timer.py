"""The CUPTI timer against a simulated CUPTI: attribution, what is refused, what is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from simulated_libcupti import SimulatedLibrary
from simulated_stream import CuptiError, SimulatedCupti, SimulatedStream, installed

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.timers.cupti import CuptiTimer, open_cupti
from pytest_gpuperf.device.timers.cupti_records import Records
from pytest_gpuperf.model.result import TracedLaunch
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
        stream.flush_l2()  # a memset of the workload's own counts, the timer's flush and the reset do not
        stream.observer("elsewhere", stream.free_ns + 640.0, stream.free_ns + 3840.0)
        stream.occupy(6400.0)  # waits for the other stream
        stream.kernel(6400.0, "second")
        stream.kernel(6400.0, "second")

    stream.log.clear()
    (times,) = timer.measure([Slot(run, 2, reset=kernel(stream, 90_000.0, "reset"))], "cold")
    assert stream.log == ["reset", "flush", "first", "flush", "second", "second"] * 3
    assert times == pytest.approx([3200 + 60_000 + 3200 + 12_800] * 2, abs=130)
    (elapsed,) = timer.elapsed_ns
    assert elapsed == pytest.approx([3200 + 60_000 + 6400 + 12_800] * 2, abs=3000)  # the wait counts, and gaps
    (parts,) = timer.kernel_breakdown
    assert parts == pytest.approx({"first": 3200, "second": 12_800, "elsewhere": 3200, "[memset]": 60_000}, abs=70)


@pytest.mark.parametrize(("name", "cache"), [("backward", "cold"), ("flush", "warm")])
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


def test_trace_lists_launches_in_order_without_the_reset(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = cupti.add
    sizes = {"grid_x": 8, "grid_y": 2, "grid_z": 1, "block_x": 32, "block_y": 4, "block_z": 1}
    sizes["registers_per_thread"] = 40
    monkeypatch.setattr(cupti, "add", lambda **given: add(**given, **sizes) if given["kind"] == 10 else add(**given))

    def run() -> None:
        stream.kernel(900.0, "second")
        stream.kernel(900.0, "first")

    found = timer.trace(Slot(run, 9, reset=kernel(stream, 700.0, "reset"), dropped=3))
    assert found == [TracedLaunch(name, (8, 2, 1), (32, 4, 1), registers=40) for name in ("second", "first")]
    stream.log.clear()
    timer.measure([Slot(run, 1)], "warm")
    assert timer._records.activities
    assert not any(one.launch for one in timer._records.activities)


def test_late_records_are_asked_for_again(timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream) -> None:
    cupti.hold_back = True
    assert len(timer.measure([Slot(kernel(stream, 3200.0), 3)], "cold")[0]) == 3
    assert cupti.flushes[-2:] == [0, 1]


def test_failed_measurement_leaves_nothing(timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream) -> None:
    runs = iter(range(100))

    def fails() -> None:
        stream.kernel(640_000.0)
        if next(runs) == 3:
            raise KeyError("the user's own")

    other = CuptiTimer(stream, cupti, timer._records)  # type: ignore[arg-type]
    assert cupti.enabled == set()
    with pytest.raises(KeyError):
        timer.measure([Slot(fails, 9)], "cold")
    assert (cupti.enabled, cupti.pushed) == (set(), [])
    assert cupti.records  # still in a buffer
    (times,) = other.measure([Slot(kernel(stream, 3200.0), 9)], "cold")
    assert times == pytest.approx([3200.0] * 9, abs=32)


def lost_once() -> Callable[[Any], bool]:
    kernels = iter(range(100))
    return lambda record: record.kind == 10 and next(kernels) == 4


@pytest.mark.parametrize(("change", "words"), [
    ({"lose": lost_once()}, "no GPU work for 1 of 11 samples"),
    ({"dropped": 3}, "dropped 3 activity records"),
    ({"invalid": True}, "no valid time for 'kernel'"),
    ({"activity_enable": Mock(side_effect=CuptiError("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"))},
     r"MULTIPLE_SUBSCRIBERS.*ncu, nsys"),
])  # fmt: skip
def test_a_measurement_that_fails_says_why(
    timer: CuptiTimer, cupti: SimulatedCupti, stream: SimulatedStream, change: dict[str, Any], words: str
) -> None:
    vars(cupti).update(change)
    with pytest.raises(TimerError, match=words):
        timer.measure([Slot(kernel(stream, 3200.0), 10)], "cold")


@pytest.mark.parametrize(("trouble", "words"), [
    ("another copy of the library", "no GPU work"),
    ("refused callbacks", "status 15"),
    ("no library", "none of  is loaded"),
    ("lost tags", "no GPU work"),
    ("another record", "its binding expects .*activity_memset_dtype"),
])  # fmt: skip
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
        pytest.raises(TimerError, match=rf"(?s){words}.*--gpuperf-timer=graph"),
    ):
        open_cupti(stream)  # type: ignore[arg-type]
