"""Small steps add up until one is red, since what passes moves no record; what is accepted is the baseline."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import Suite

STEPS, INSTRUCTION_NS, COMMITS = 1000, 40.0, 20
QUICK = ("--gpuperf-disturbed", "-k", "1024")


def commit(suite: Suite, number: int, percent: float = 0.4) -> None:
    """Make ``work`` slower by so many percent ``number`` times over: its time grows with its instructions."""
    before_ns = 2000.0 + INSTRUCTION_NS * (STEPS + 20)
    more = round(before_ns * ((1 + percent / 100) ** number - 1) / INSTRUCTION_NS)
    text = (suite.path / "test_suite.py").read_text()
    head, _, rest = text.partition('"-DSTEPS=')
    suite.write("test_suite.py", f'{head}"-DSTEPS={STEPS + more}"{rest.partition(chr(34))[2]}')


@pytest.fixture
def frog(gpu_suite: Suite) -> Suite:
    """``work``, on record as it was before the first commit."""
    commit(gpu_suite, 0)
    assert gpu_suite.run("--update-baselines", *QUICK).ret == 0
    return gpu_suite


def on_record(suite: Suite) -> dict:
    file = read_evidence(suite.path / "baselines/simulated-gpu/test_suite.jsonl")
    return file["tests"]["test_work[1024]"]["work"]


def test_updates_that_pass_keep_the_record_and_the_third_step_is_red(frog: Suite) -> None:
    before = on_record(frog)
    for number in range(1, COMMITS + 1):
        commit(frog, number)
        gated = frog.run("--gpuperf", "-k", "1024")
        if gated.ret:
            break
        assert frog.run("--update-baselines", *QUICK).ret == 0
    assert number <= 3
    assert "  SLOWER  " in gated.stdout.str()
    assert on_record(frog)["identity"] == before["identity"]


def test_accepted_loss_is_the_baseline_of_the_next_gate(frog: Suite) -> None:
    """A default update takes a kernel that got 2.5 % slower; unchanged code is green from then on, paired or not."""
    commit(frog, 1, percent=2.5)
    before = on_record(frog)
    red = frog.run("--gpuperf", "-k", "1024")
    assert red.ret == 1
    assert "If this change is intended: pytest --update-baselines, and commit what it writes." in red.stdout.str()
    assert frog.run("--update-baselines", *QUICK).ret == 0
    assert on_record(frog)["identity"] != before["identity"]
    for flags in ((), ("--gpuperf-time=all",), ("--gpuperf-time=changed",)):
        gated = frog.run("--gpuperf", "-k", "1024", *flags)
        assert gated.ret == 0
        assert "slower" not in gated.stdout.str().lower()


def test_what_passed_keeps_its_record_unless_all_is_asked_for(frog: Suite) -> None:
    commit(frog, 1)
    before = on_record(frog)
    for arguments in ((), ("test_suite.py",)):
        updated = frog.run("--update-baselines", *QUICK, *arguments)
        updated.stdout.re_match_lines([
            r"  work .* SAME$",
            "0 baselines written: no change is proven here; to record a test all the same, name it .*",
        ])  # fmt: skip
        assert on_record(frog) == before
    frog.run("--update-baselines=all", *QUICK, "test_suite.py::test_work").stdout.fnmatch_lines(["2 baselines written"])
    assert on_record(frog)["identity"] != before["identity"]
