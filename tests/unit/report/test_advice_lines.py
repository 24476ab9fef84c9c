"""Causes and states in words."""

from __future__ import annotations

import pytest

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.model.advice import Advice, State
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.report.message import WIDTH, advice_lines, gain_words, state_line, worth_naming, wrapped

FIGURE = Change(what="sectors per global request", before=4, after=32, direction="worse")


def test_a_cause_says_evidence_gain_remedy_and_example() -> None:
    one = Advice(cause="uncoalesced access", evidence=(FIGURE,), gain=0.56, arch="sm_90", counted=True)
    text = " ".join(" ".join(advice_lines([one])).split())
    cause = BY_KEY["uncoalesced access"]
    assert text == (
        f"cause: {cause.key}: {cause.says} sectors per global request 4 -> 32; gain about 56 %, by the counters "
        f"-> {cause.remedy} example: {cause.family} (gpuperf examples)"
    )


def test_the_architecture_is_named_where_machine_code_was_compared() -> None:
    by_code = Advice(cause="uncoalesced access", evidence=(FIGURE,), gain=0.56, arch="sm_90")
    assert advice_lines([by_code])[0].strip().startswith("cause: uncoalesced access (sm_90): ")


def test_only_causes_close_to_the_first_are_named() -> None:
    gains = (0.4, 0.2, 0.05)
    several = [Advice(cause=key, evidence=(), gain=gain) for key, gain in zip(list(BY_KEY)[:3], gains, strict=True)]
    assert sum("cause:" in line for line in advice_lines(several, most=4)) == 2
    assert sum("cause:" in line for line in advice_lines(several, most=1)) == 1
    assert advice_lines([]) == []


def test_a_cause_of_what_gates_is_named_however_small_its_gain() -> None:
    keys = list(BY_KEY)
    several = [
        Advice(cause=keys[0], evidence=(), gain=0.001, gates=True),
        Advice(cause=keys[1], evidence=(), gain=0.4),
        Advice(cause=keys[2], evidence=(), gain=0.05),
    ]
    assert worth_naming(several) == several[:2]


@pytest.mark.parametrize("gain", [0.0, 0.004, 0.005])
def test_a_gain_too_small_for_a_figure(gain: float) -> None:
    assert gain_words(Advice(cause="stack", evidence=(), gain=gain)) == "gain small, by the machine code"


def test_the_least_gain_that_is_a_figure() -> None:
    assert gain_words(Advice(cause="stack", evidence=(), gain=0.006)) == "gain about 1 %, by the machine code"


def test_states() -> None:
    bare = State(bound="memory", why="87 % of the copy bandwidth")
    assert state_line(bare) == "memory bound: 87 % of the copy bandwidth"
    full = State(bound="latency", why="SM 20% and memory 31%", roofline=0.31, missing="counters would tell")
    assert state_line(full) == "latency bound: SM 20% and memory 31% (counters would tell)"


def test_lines_are_broken_within_the_width_and_not_before_a_percent_sign() -> None:
    lines = wrapped("word " * 17 + "abc 62 %, and more of it", 8)
    assert all(len(line) <= WIDTH for line in lines)
    assert any("62 %" in line for line in lines)
    assert "\N{NO-BREAK SPACE}" not in "".join(lines)
