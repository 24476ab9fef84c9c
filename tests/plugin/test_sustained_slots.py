"""``pair_slot="sustained"``: where it is given, what it changes on the way to a verdict, and what it finds."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence, write_evidence

from pytest_gpuperf import timing
from pytest_gpuperf.config.options import SUSTAINED_BUDGET_S
from pytest_gpuperf.timing import paired_run
from pytest_gpuperf.workload import timed_rounds

ONE = ("-k", "1024")
SUSTAINED = 'pair_slot="sustained"'

POWERED = """
def pytest_configure(config):
    if confirms(config):
        from pytest_gpuperf.timing import paired_run, sustained
        from pytest_gpuperf.workload import timed_rounds

        def pair(gpu, *given, **settings):
            return paired_run.pair(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **settings)

        sustained.SLOT_S, timed_rounds.pair = 0.004, pair

class Powered(SimulatedGpu):
    \"\"\"Code that is not the baseline's takes 3 % longer once it has run for 250 launches in a row.\"\"\"

    last, streak = "", 0

    def release_unused(self):
        self.streak = 0  # each test begins on a GPU that has rested

    def load(self, binary):
        kernel, code = super().load(binary), binary.profile.code_hash

        def launch(*given):
            before = self.elapsed_ns
            kernel(*given)
            self.last, self.streak = code, self.streak + 1 if code == self.last else 1
            if code != "BASELINE" and self.streak > 250:
                self.elapsed_ns += 0.03 * (self.elapsed_ns - before)

        return launch
"""


def sustained(suite):
    suite.edit("test_suite.py", "bytes=2 * a.nbytes,", f"bytes=2 * a.nbytes, {SUSTAINED},")


@pytest.fixture
def powered(recorded, monkeypatch):
    """Baselines, changed code of the same speed unless it runs on, and slots of six hundred samples.

    Pairs go by the simulated GPU's clock: on a busy machine slots as long by that of the wall hold fewer samples.
    """

    def pair(gpu, *given, **settings):
        return paired_run.pair(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **settings)

    monkeypatch.setattr(timing.sustained, "SLOT_S", 0.004)
    monkeypatch.setattr(timed_rounds, "pair", pair)
    recorded.change_code()
    powered_by(recorded)
    return recorded


def powered_by(suite):
    content = read_evidence(suite.path / "baselines/simulated-gpu/test_suite.json")
    baseline = content["tests"]["test_work[1024]"]["work"]["identity"]["code"]
    suite.edit("conftest.py", "\ndef work(", f"{POWERED.replace('BASELINE', baseline)}\ndef work(")
    suite.edit("conftest.py", "return SimulatedGpu(", "return Powered(")


@pytest.fixture
def pairs(monkeypatch):
    """How pairs were asked for, and none of them is sustained in earnest."""
    asked = []

    def pair(*given, pair_slot, budget_s, **settings):
        asked.append((pair_slot, budget_s))
        return paired_run.pair(*given, budget_s=5.0, **settings)

    monkeypatch.setattr(timed_rounds, "pair", pair)
    return asked


def judged(pairs):
    """Slots and budgets of those pairs that decide: self-pairs have 0.2 s."""
    return [(slot, budget) for slot, budget in pairs if budget > 0.2]


# --- where it is given ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["long", "Sustained", 0.5, True, ["sustained"]])
def test_a_slot_of_another_kind_is_refused_with_what_there_is(gpu_suite, value):
    gpu_suite.edit("test_suite.py", "bytes=2 * a.nbytes,", f"pair_slot={value!r},")
    result = gpu_suite.run(*ONE)
    result.assert_outcomes(failed=1)
    assert f"BadArgument: gpuperf: pair_slot={value!r} is not valid: it takes 'short' or 'sustained'" in (
        result.stdout.str()
    )


@pytest.mark.parametrize(
    ("argument", "marker", "flags", "slot", "budget_s"),
    [
        ("", "", (), "short", 5),
        (SUSTAINED, "", (), "sustained", SUSTAINED_BUDGET_S),
        ("", SUSTAINED, (), "sustained", SUSTAINED_BUDGET_S),
        ('pair_slot="short"', SUSTAINED, (), "short", 5),
        (SUSTAINED, 'pair_slot="short", budget_s=7', (), "sustained", 7),
        (SUSTAINED, "", ("--gpuperf-budget=8",), "sustained", 8),
        (SUSTAINED, "", ("-o", "gpuperf_budget=9"), "sustained", 9),
    ],
)
def test_the_nearest_word_wins_and_a_budget_that_is_not_given_is_long_enough(
    recorded, pairs, argument, marker, flags, slot, budget_s
):
    recorded.change_code()
    recorded.edit("test_suite.py", "bytes=2 * a.nbytes,", f"bytes=2 * a.nbytes, {argument or 'name=None'},")
    recorded.edit("test_suite.py", "@pytest.mark.param", f"@pytest.mark.gpuperf({marker})\n@pytest.mark.param")
    recorded.run("--gpuperf", *ONE, *flags).assert_outcomes(passed=1)
    ((asked, left_s),) = judged(pairs)
    assert asked == slot
    assert budget_s - 1 < left_s < budget_s  # less what the rounds took


# --- what it changes -----------------------------------------------------------------------------


def test_no_screen_acquits_changed_code(screened, pairs):
    screened.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*SAME"])
    assert judged(pairs) == []
    sustained(screened)
    screened.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*SAME"])
    assert [slot for slot, _ in judged(pairs)] == ["sustained"]


def test_unchanged_code_is_not_paired_and_self_pairs_have_short_slots(recorded, pairs):
    sustained(recorded)
    recorded.run("--gpuperf").stdout.re_match_lines([r"  work .*UNCHANGED"])
    assert [slot for slot, _ in pairs] == ["short"] * 3
    assert judged(pairs) == []


def test_what_cannot_be_paired_is_judged_by_its_rounds_and_says_so(screened, pairs):
    sustained(screened)
    path = screened.path / "baselines/simulated-gpu/test_suite.json"
    content = read_evidence(path)
    content["tests"]["test_work[1024]"]["work"]["cubin"] = ""
    write_evidence(path, content)
    result = screened.run("--gpuperf", "--gpuperf-explain", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work *SAME", "*not paired: *the baseline was recorded without its machine code*"])
    assert judged(pairs) == []


# --- what it finds -------------------------------------------------------------------------------


def test_a_kernel_that_is_slower_only_when_it_runs_on_fails_with_sustained_slots_alone(powered):
    powered.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*SAME"])
    sustained(powered)
    result = powered.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  SLOWER  on simulated-gpu \(time\)  x1\.0[23]\d \[.*  paired in sustained slots, \d+\+\d+ blocks,",
            r" +proven to be more than 0.5 % slower, in two processes",
        ]
    )
    assert "blocks were discarded" not in result.stdout.str()


def test_what_power_costs_is_not_taken_for_a_shift_of_the_environment(powered):
    """Two of three workloads are slower in their pairs by more than their rounds show."""
    sustained(powered)
    result = powered.run("--gpuperf")
    result.assert_outcomes(failed=2, passed=1)
    assert "environment shift" not in result.stdout.str()


def test_samples_too_short_for_a_sustained_slot_are_told_with_the_verdict(powered, monkeypatch):
    monkeypatch.setattr(timing.sustained, "SLOT_S", 0.5)
    monkeypatch.setattr(timing.sustained, "MOST_SAMPLES", 600)
    sustained(powered)
    result = powered.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*its sustained slots have 600 samples, the most there are, and last 0.0* of 0.5 s: *"]
    )


def test_a_budget_too_short_for_its_slots_is_told_which_would_do(powered, monkeypatch):
    monkeypatch.setattr(timing.sustained, "SLOT_S", 0.02)
    sustained(powered)
    result = powered.run("--gpuperf", "--gpuperf-budget=0.15", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [r".*its budget of 0.15 s ended after \d+ blocks?, and a verdict takes 1[14] or more: raise it with budget_s="]
    )
