"""Clock and power of a kernel that runs on: what is seen, and how two of them are told apart."""

from __future__ import annotations

import time

import pytest

from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.timing import power
from pytest_gpuperf.timing.power import Draw, compared, draw_of, watched


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "LOOK_EVERY_S", 0.002)


def states(*clocks: int | None, power_w: float | None = None) -> list[DeviceState]:
    return [DeviceState(sm_clock_mhz=clock, power_w=power_w) for clock in clocks]


def test_the_gpu_is_looked_at_while_a_block_runs_and_no_longer() -> None:
    with watched(lambda: DeviceState(sm_clock_mhz=1980)) as seen:
        time.sleep(0.1)
    count = len(seen)
    assert count >= 5
    time.sleep(0.02)
    assert len(seen) == count


def test_an_error_of_the_block_is_its_own() -> None:
    with pytest.raises(KeyError), watched(DeviceState):
        raise KeyError


def test_a_state_that_cannot_be_read_ends_the_looking_and_nothing_else() -> None:
    answers = iter(states(1980, 1980))
    with watched(lambda: next(answers)) as seen:
        time.sleep(0.05)
    assert len(seen) == 2


def test_what_a_block_that_is_over_at_once_ran_at_is_not_known() -> None:
    with watched(DeviceState) as seen:
        pass
    assert draw_of(seen) == Draw(None, None)


def test_the_second_half_counts_and_its_median() -> None:
    assert draw_of(states(300, 1980, 1980, 1700, 1710, 1980, power_w=700.0)) == Draw(1710, 700.0)
    assert draw_of(states(None, None)) == Draw()


@pytest.mark.parametrize(
    ("baseline", "candidate", "words"),
    [
        (Draw(1980, 250.0), Draw(1755, 698.4),
         "when it runs on the SM clock is 1755 MHz at 698 W, with the baseline's code 1980 MHz at 250 W: it draws more "
         "power"),
        (Draw(1755, 698.0), Draw(1980, 250.0),
         "when it runs on the SM clock is 1980 MHz at 250 W, with the baseline's code 1755 MHz at 698 W"),
        (Draw(1980), Draw(1755), "when it runs on the SM clock is 1755 MHz, with the baseline's code 1980 MHz"),
        (Draw(1980, 250.0), Draw(1965, 400.0), ""),
        (Draw(), Draw(1755, 698.0), ""),
        (Draw(1755, 698.0), Draw(), ""),
    ],
)  # fmt: skip
def test_a_clock_that_differs_by_more_than_a_percent_is_told(baseline: Draw, candidate: Draw, words: str) -> None:
    assert compared(baseline, candidate) == words
