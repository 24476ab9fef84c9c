"""CUPTI's buffers read as they lie in memory, against a simulated libcupti behind real C function pointers."""

from __future__ import annotations

import ctypes
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_libcupti import INVALID_KIND, SimulatedLibrary, structure
from simulated_stream import Activity as Record
from simulated_stream import CuptiError, SimulatedCupti, SimulatedStream

from pytest_gpuperf.device.timers import cupti_records
from pytest_gpuperf.device.timers.cupti_records import Activity, Records, records_of


@pytest.fixture
def binding() -> SimulatedCupti:
    return SimulatedCupti(SimulatedStream())


@pytest.fixture
def library(binding: SimulatedCupti) -> SimulatedLibrary:
    return SimulatedLibrary(binding)


@pytest.fixture
def source(library: SimulatedLibrary) -> Records:
    started = Records(library.binding, library)
    started.start()
    return started


def kernel(correlation: int, start: int = 100, end: int = 200, name: str = "kernel") -> Record:
    return Record(kind=10, correlation_id=correlation, start=start, end=end, name=name)


def tag(correlation: int, number: int, external_kind: int = 5) -> Record:
    return Record(kind=39, correlation_id=correlation, external_kind=external_kind, external_id=number)


def flushed(source: Records, binding: SimulatedCupti, records: list[Record]) -> Records:
    binding.records.extend(records)
    source.flush(0)
    return source


numbers = st.integers(0, 2**32 - 1)
times = st.integers(0, 2**64 - 1)
records = st.one_of(
    st.builds(kernel, numbers, times, times, st.sampled_from(["one", "two", "_Z3fooIfEvPT_"])),
    st.builds(tag, numbers, times, st.integers(0, 6)),
    st.builds(Record, kind=st.sampled_from([1, 2, 4, 5, 77]), correlation_id=numbers, start=times, end=times),
)


@given(st.lists(records, max_size=40), st.integers(1, 12))
def test_every_record_is_read_whatever_buffers_it_came_in(given_records: list[Record], per_buffer: int) -> None:
    binding = SimulatedCupti(SimulatedStream())
    library = SimulatedLibrary(binding, records_per_buffer=per_buffer)
    source = Records(library.binding, library)
    source.start()
    gc.collect()  # the callbacks outlive it
    flushed(source, binding, given_records)
    names = {1: "[memcpy]", 2: "[memset]"}
    assert sorted(source.activities) == sorted(
        (one.correlation_id, one.start, one.end, names.get(one.kind) or one.name, ())
        for one in given_records
        if one.kind in (1, 2, 10)
    )
    tags = [one for one in reversed(given_records) if one.kind == 39 and one.external_kind == 5]
    assert source.tags == {one.correlation_id: one.external_id for one in tags}


def test_a_buffer_is_lent_again_only_when_it_has_been_read(source: Records, library: SimulatedLibrary) -> None:
    first = library.request()
    assert first is not None
    assert first % 8 == 0
    library.complete(first, library.encoded(kernel(1)))
    second = library.request()
    assert second not in (first, None)
    source.flush(0)
    assert source.activities == [Activity(1, 100, 200, "kernel")]
    assert library.request() == first
    assert library.request() not in (first, second, None)
    library.records_per_buffer = 3
    for _ in range(5):
        flushed(source, library.binding, [kernel(number) for number in range(12)])
    assert (len(library.lent), len(set(library.lent))) == (20, 4), "reused from flush to flush"


def test_a_buffer_lent_by_another_user_is_read_but_never_lent_on(source: Records, library: SimulatedLibrary) -> None:
    foreign = ctypes.create_string_buffer(4096)
    library.complete(ctypes.addressof(foreign), library.encoded(kernel(1)))
    source.flush(0)
    assert source.activities == [Activity(1, 100, 200, "kernel")]
    assert library.request() != ctypes.addressof(foreign)


@pytest.mark.parametrize("function", ["register", "flush", "walk"])
def test_refusals(source: Records, binding: SimulatedCupti, library: SimulatedLibrary, function: str) -> None:
    setattr(library, f"{function}_status", 15)
    binding.records.append(kernel(1))
    refused = source.start if function == "register" else lambda: source.flush(0)
    with pytest.raises(CuptiError, match="status 15"):
        refused()


def test_an_incomplete_record_ends_its_buffer(source: Records, library: SimulatedLibrary) -> None:
    library.walk_status = INVALID_KIND
    library.complete(library.request(), library.encoded(kernel(1)) + bytes(216))
    source.flush(1)
    assert [activity.correlation for activity in source.activities] == [1]


def test_loaded_library_releases_the_lock(binding: SimulatedCupti, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti_records, "SONAMES", ("libgpuperf-none.so", "libc.so.6"))
    found = cupti_records.loaded_library()
    assert found._name == "libc.so.6"
    assert not isinstance(found, ctypes.PyDLL)
    with pytest.raises(AttributeError, match="cuptiActivityRegisterCallbacks"):
        records_of(binding)


@pytest.mark.parametrize("version", [9, 11])
def test_fields_are_where_the_newest_type_has(binding: SimulatedCupti, library: SimulatedLibrary, version: int) -> None:
    moved = structure(224, start=(24, "u8"), end=(16, "u8"), name=(104, "i8"), correlation_id=(92, "u4"))
    setattr(binding, f"activity_kernel{version}_dtype", moved)
    binding.activity_kernel99_x_dtype = None
    source = Records(library.binding, library)
    source.start()
    flushed(source, binding, [kernel(1, 100, 200)])
    assert source.activities == [Activity(1, *((200, 100) if version == 11 else (100, 200)), "kernel")]
