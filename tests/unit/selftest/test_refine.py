"""Slower versions of kernels whose time is no straight line of their size: paired until they are about right."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import pytest
import simulated_machine
from hypothesis import given
from hypothesis import strategies as st
from pytest_gpuperf.selftest import refine
from pytest_gpuperf.selftest.kernels import COPY
from pytest_gpuperf.selftest.known_slowdowns import Subject
from pytest_gpuperf.selftest.refine import refined
from simulated_machine import FIXED_NS, NS_PER_COUNT, SimulatedMachine

from pytest_gpuperf.compile.cache import CompileCache

COUNT = 1 << 20
BASELINE_NS = FIXED_NS + NS_PER_COUNT["copy"] * COUNT


@pytest.fixture(autouse=True, scope="module")
def few_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "LOOKING", dataclasses.replace(refine.LOOKING, blocks_max=24))
        yield


def subject(percent: float, count: int, *, capacity: int = 1 << 21) -> Subject:
    """Whose version that is to be slower by ``percent`` has ``count``, wrongly."""
    key = f"{percent:g}"
    return Subject("copy", COPY.name, COUNT, capacity, BASELINE_NS, {key: count}, {key: 1 + percent / 100})


def looked_at(one: Subject, percent: float) -> Subject:
    machine = SimulatedMachine(seed=4, sample_sd=0.0005, process_sd=0.0)
    return refined(machine, machine.timer(), one, (percent,), seconds=60.0, seed=5, cache=CompileCache())


def true_ratio(one: Subject, percent: float) -> float:
    return (FIXED_NS + NS_PER_COUNT[COPY.name] * one.candidate(percent).count) / BASELINE_NS


@pytest.mark.parametrize("off", [0.3, 1.0, 3.0])
def test_a_version_is_sized_until_it_is_as_much_slower_as_wanted(off: float) -> None:
    found = looked_at(subject(1.0, COUNT + round(off * 0.01 * BASELINE_NS / NS_PER_COUNT[COPY.name])), 1.0)
    assert true_ratio(found, 1.0) - 1 == pytest.approx(0.0105, abs=0.0006)
    assert found.ratio(1.0) == pytest.approx(true_ratio(found, 1.0), abs=2e-4)
    assert 0 < found.ratio_se(1.0) < 2e-4


def test_how_far_off_a_look_is_likely_to_be_is_known() -> None:
    """In 60 looks of few blocks: about 95 of 100 are within two of the standard errors that they name."""
    (key,), inside = subject(1.0, COUNT + 131_072).counts, 0
    for seed in range(60):
        machine = SimulatedMachine(seed=seed, sample_sd=0.003, process_sd=0.0)
        one = subject(1.0, COUNT + 2100)
        found = refined(
            machine, machine.timer(), one, (1.0,), seconds=60.0, seed=seed, within=(0.0, 100.0), cache=CompileCache()
        )
        assert found.counts[key] == COUNT + 2100
        inside += abs(found.ratio(1.0) / true_ratio(found, 1.0) - 1) <= 2 * found.ratio_se(1.0)
    assert inside >= 52


def test_a_version_that_buffers_have_no_room_for_is_known_as_it_is() -> None:
    capacity = COUNT + 2000
    found = looked_at(subject(5.0, COUNT + 1000, capacity=capacity), 5.0)
    assert found.candidate(5.0).count == capacity
    assert found.ratio(5.0) == pytest.approx(true_ratio(found, 5.0), abs=2e-4)


def test_a_version_that_takes_no_longer_whatever_its_size_is_known_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(simulated_machine.NS_PER_COUNT, COPY.name, 0.0)
    found = looked_at(subject(1.0, COUNT + 500), 1.0)
    assert COUNT < found.candidate(1.0).count <= found.capacity
    assert found.ratio(1.0) == pytest.approx(1.0, abs=2e-4)


def test_looks_of_which_no_block_counts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refine, "paired_ratio", lambda *_: (math.nan, math.nan))
    one = subject(1.0, COUNT + 500)
    assert looked_at(one, 1.0) == one


def scripted(monkeypatch: pytest.MonkeyPatch, ratios: Sequence[float]) -> list[int]:
    """Filled with the counts that are looked at, which have these ratios one after another."""
    looked, left = [], iter(ratios)

    def paired_ratio(_device: object, _timer: object, _subject: Subject, count: int, *_: object) -> tuple[float, float]:
        looked.append(count)
        return next(left), 0.0004

    monkeypatch.setattr(refine, "paired_ratio", paired_ratio)
    return looked


def test_a_look_of_which_no_block_counts_leaves_the_size_whose_ratio_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a version three times as large would be known as what it was before, within the tolerance."""
    looked = scripted(monkeypatch, [1.0035, math.nan])
    found = looked_at(subject(1.0, COUNT + 500), 1.0)
    assert looked == [COUNT + 500, COUNT + 1500]
    assert (found.candidate(1.0).count, found.ratio(1.0), found.ratio_se(1.0)) == (COUNT + 500, 1.0035, 0.0004)


def test_a_version_whose_size_would_not_change_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = scripted(monkeypatch, [1.01, 1.03])
    found = looked_at(subject(5.0, COUNT + 1000, capacity=COUNT + 2000), 5.0)
    assert looked == [COUNT + 1000, COUNT + 2000]
    assert (found.candidate(5.0).count, found.ratio(5.0)) == (COUNT + 2000, 1.03)


def test_a_version_that_is_no_slower_is_left_and_known_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = scripted(monkeypatch, [0.998])
    found = looked_at(subject(1.0, COUNT + 500), 1.0)
    assert looked == [found.candidate(1.0).count] == [COUNT + 500]
    assert found.ratio(1.0) == 0.998


@given(
    st.lists(st.one_of(st.floats(0.9, 1.2), st.just(math.nan)), min_size=refine.LOOKS, max_size=refine.LOOKS),
    st.integers(1, 5000),
    st.integers(1, 4000),
)
def test_a_size_and_its_ratio_are_of_one_look_and_within_the_buffers(
    ratios: list[float], added: int, room: int
) -> None:
    one = subject(1.0, COUNT + added, capacity=COUNT + room)
    with pytest.MonkeyPatch.context() as patch:
        looked = scripted(patch, ratios)
        found = looked_at(one, 1.0)
    assert all(COUNT < count <= one.capacity for count in looked)
    if math.isnan(ratios[0]):
        assert found == one
    else:
        assert (found.candidate(1.0).count, found.ratio(1.0)) in list(zip(looked, ratios, strict=False))
