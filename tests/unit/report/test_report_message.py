"""The message of a red workload: on one screen, whatever changed, with the cause and the remedy."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.formatting import time_basis, time_step
from pytest_gpuperf.judge.static_verdict import missing_static
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Advice, Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report.message import (
    NO_CAUSE,
    SCREEN_ROWS,
    WIDTH,
    advice_lines,
    gain_text,
    rows,
    workload_lines,
    wrapped,
)
from pytest_gpuperf.session.exit_policy import failure_message

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
SPILLED = Change(what="spill stores", before=0, after=176, unit="bytes", direction="worse")
SPILLING = Advice(
    cause="register spilling", gain=0.41, arch="sm_90",
    evidence=(Change(what="spilled bytes per thread", before=0, after=352, direction="worse"),),
)  # fmt: skip


def static(*changes: Change, target: str = "sm_90") -> Judgement:
    return Judgement(key=KEY, target=target, kind="static", verdict=Verdict.WORSE, changes=changes or (SPILLED,))


def slower() -> Judgement:
    figures = TimeFigures(
        before_ns=50_000.0, after_ns=84_500.0, ratio=1.69, interval=(1.687, 1.693), tolerance=0.02, method="paired",
        blocks=7,
    )  # fmt: skip
    return Judgement(key=KEY, target="nvidia-h200", kind="time", verdict=Verdict.SLOWER, time=figures,
                     reason="the upper half of the interval is above the tolerance")  # fmt: skip


def test_a_red_workload_has_ratio_interval_changes_cause_and_remedy() -> None:
    text = failure_message([static(), slower()], {KEY: (SPILLING,)})
    for words in ("copy  WORSE  on sm_90 (static)", "spill stores 0 -> 176 bytes", "copy  SLOWER  on nvidia-h200",
                  "1.69", "1.687", "cause: register spilling", "gain about 41 %, by the machine code",
                  "example: occupancy_registers", "If this change is intended"):  # fmt: skip
        assert words in text
    assert BY_KEY["register spilling"].remedy.split()[0] in text
    timed = msgspec.structs.replace(slower(), changes=(SPILLED, Change(what="instructions", before=100, after=200)))
    lines = workload_lines([static(), timed], (SPILLING,))  # what stands above a time is not said again
    assert [sum(words in line for line in lines) for words in ("spill stores", "instructions 100 -> 200")] == [1, 1]


def test_architectures_that_say_the_same_are_said_once() -> None:
    alike = [static(target=arch) for arch in ("sm_80", "sm_90", "sm_120")]
    lines = workload_lines(alike, ())
    assert lines[0] == "copy  WORSE  on sm_80, sm_90, sm_120 (static)"
    assert sum("spill stores" in line for line in lines) == 1
    other = static(Change(what="spill stores", before=0, after=96, direction="worse"), target="sm_120")
    two = workload_lines([*alike[:2], other], (SPILLING,))
    assert sum("WORSE" in line for line in two) == 2
    assert two[next(n for n, line in enumerate(two) if "cause:" in line) - 1] == ""  # causes are set off
    assert "" not in workload_lines(alike, (SPILLING,))
    assert workload_lines([*alike, other], ())[-2:] == ["", NO_CAUSE]


def test_a_new_kernel_and_its_remedy_are_told_once_for_all() -> None:
    keys = [KEY, msgspec.structs.replace(KEY, workload="other")]
    new = [missing_static(key, target) for key in keys for target in ("sm_80", "sm_90", "sm_120")]
    text = failure_message(new)
    assert text.count("  NEW  on sm_80, sm_90, sm_120 (static)\n") == 2
    assert text.count("no baseline yet: record one with pytest --update-baselines=new and commit it") == 1
    assert NO_CAUSE not in text


def test_more_causes_than_fit_give_way_before_the_first_one_does() -> None:
    many = [
        static(*(Change(what=f"figure {n}", before=n, after=2 * n + arch, direction="worse") for n in range(12)),
               target=f"sm_{arch}")
        for arch in (80, 86, 89, 90, 100, 120)
    ]  # fmt: skip
    second = Advice(cause="occupancy lost", gain=0.4, evidence=(Change(what="occupancy", before=100, after=50),))
    lines = workload_lines(many, (SPILLING, second))
    assert rows(lines) < SCREEN_ROWS
    assert "cause: register spilling" in "\n".join(lines)
    assert "occupancy lost" not in "\n".join(lines)
    few = workload_lines([static()], (SPILLING, second))
    assert "cause: occupancy lost" in "\n".join(few)
    for other, shown in (({"gain": 0.05}, 1), ({"gain": 0.05, "gates": True}, 2), ({"cause": "of another version"}, 1)):
        advised = (SPILLING, msgspec.structs.replace(second, **other))  # far behind; a cause of what gates; unknown
        assert sum("cause:" in line for line in advice_lines(advised)) == shown


words = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=24)
changes = st.builds(
    Change, what=words, before=st.integers(0, 10**6), after=st.integers(0, 10**6), unit=st.sampled_from(["", "bytes"]),
    direction=st.sampled_from(["worse", "better", "neutral"]), note=st.sampled_from(["", "limited by registers"]),
)  # fmt: skip
advice = st.builds(
    Advice, cause=st.sampled_from(list(BY_KEY)), evidence=st.lists(changes, max_size=4).map(tuple),
    gain=st.floats(0, 1), arch=st.just("sm_90"), counted=st.booleans(),
)  # fmt: skip


@given(st.lists(st.lists(changes, min_size=1, max_size=20), min_size=1, max_size=4), st.lists(advice, max_size=5))
def test_whatever_changed_it_fits_the_screen(changed: list[list[Change]], causes: list[Advice]) -> None:
    failed = [static(*one, target=f"sm_{arch}") for one, arch in zip(changed, (80, 90, 100, 120), strict=False)]
    text = failure_message([*failed, slower()], {KEY: causes})
    assert rows(text.splitlines()) <= SCREEN_ROWS
    assert all(len(line) <= WIDTH for line in text.splitlines())


# --- causes and figures ----------------------------------------------------------------------------

FIGURE = Change(what="sectors per global request", before=4, after=32, direction="worse")


def test_cause_has_evidence_gain_remedy_and_example() -> None:
    one = Advice(cause="uncoalesced access", evidence=(FIGURE,), gain=0.56, arch="sm_90", counted=True)
    text = " ".join(" ".join(advice_lines([one])).split())
    cause = BY_KEY["uncoalesced access"]
    assert text == (
        f"cause: {cause.key}: {cause.says} sectors per global request 4 -> 32; gain about 56 %, by the counters "
        f"-> {cause.remedy} example: {cause.family} (gpuperf examples)"
    )
    at_line = msgspec.structs.replace(one, file="k/a.cu", line=7, at_line=Change(what="store", before=4, after=32))
    assert f"k/a.cu:7 store: 4 -> 32; {FIGURE}; gain about 56 %" in "\n".join(advice_lines([at_line]))
    in_python = msgspec.structs.replace(one, cause="register spilling", in_python=True)
    assert "num_warps" in " ".join(advice_lines([in_python])) != " ".join(advice_lines([one]))
    by_code = msgspec.structs.replace(one, counted=False)
    assert advice_lines([by_code])[0].strip().startswith("cause: uncoalesced access (sm_90): ")
    for gain, words in ((0.005, "small"), (0.006, "about 1 %"), (-1.61, "unknown")):
        assert gain_text(msgspec.structs.replace(by_code, gain=gain)) == f"gain {words}, by the machine code"
    assert any("62 %" in line for line in wrapped("word " * 17 + "abc 62 %, and more of it", 8))


PAIRED = TimeFigures(
    before_ns=51_200.0, after_ns=52_275.0, ratio=1.021, interval=(1.018, 1.024), tolerance=0.005, method="paired",
    blocks=23, confirm_blocks=10, log_e=13.4588, log_e_needed=13.1224,
)  # fmt: skip


@pytest.mark.parametrize(("figures", "step", "basis"), [
    (PAIRED, "x1.021 [1.018, 1.024]  51.2 us -> 52.3 us",
     "tolerance 0.5 %, paired, 23+10 blocks, E=7.0e5 (need 5.0e5), interval 95 % anytime"),
    (TimeFigures(ratio=1.03, blocks=1), "x1.030", "paired, 1 block"),
    (TimeFigures(before_ns=51_200.0, after_ns=52_736.0, ratio=1.03, tolerance=0.005, method="record"),
     "x1.030  51.2 us -> 52.7 us", "tolerance 0.5 %, against the recorded time"),
    (TimeFigures(method="identity"), "", "equal machine code"),
])  # fmt: skip
def test_time_is_a_step_and_its_basis(figures: TimeFigures, step: str, basis: str) -> None:
    assert (time_step(figures), time_basis(figures)) == (step, basis)
