"""``pair_slot="sustained"``: where it is given, what it changes on the way to a verdict, and what it finds."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

from pytest_gpuperf.options import SUSTAINED_BUDGET_S
from pytest_gpuperf.timing import blocks
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.workload import gate

ONE = ("-k", "1024")
SUSTAINED = 'pair_slot="sustained"'

POWERED = """
def pytest_configure(config):
    if confirms(config):
        from pytest_gpuperf.timing import blocks
        from pytest_gpuperf.timing.compare import compare
        from pytest_gpuperf.workload import gate

        blocks.BURST_S = 0.004
        gate.compare = lambda gpu, *given, **more: compare(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **more)

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
def comparisons(monkeypatch):
    """Whether each comparison was asked for in sustained slots, and its budget; none is sustained in earnest."""
    asked = []

    def short(*given, burst=False, budget_s, **more):
        asked.append((burst, budget_s))
        return compare(*given, budget_s=5.0, **more)

    monkeypatch.setattr(gate, "compare", short)
    return asked


@pytest.mark.parametrize(
    ("argument", "marker", "flags", "asked"),
    [
        ("", "", (), (False, 5)),
        (SUSTAINED, "", (), (True, SUSTAINED_BUDGET_S)),
        ("", SUSTAINED, (), (True, SUSTAINED_BUDGET_S)),
        ('pair_slot="short"', SUSTAINED, (), (False, 5)),
        (SUSTAINED, 'pair_slot="short", budget_s=7', (), (True, 7)),
        (SUSTAINED, "", ("--gpuperf-budget=8",), (True, 8)),
        (SUSTAINED, "", ("-o", "gpuperf_budget=9"), (True, 9)),
    ],
)
def test_the_nearest_word_wins_and_its_budget_is_long_enough(recorded, comparisons, argument, marker, flags, asked):
    recorded.change_code()
    recorded.edit("test_suite.py", "bytes=2 * a.nbytes,", f"bytes=2 * a.nbytes, {argument or 'name=None'},")
    recorded.edit("test_suite.py", "@pytest.mark.param", f"@pytest.mark.gpuperf({marker})\n@pytest.mark.param")
    recorded.run("--gpuperf", *ONE, *flags).assert_outcomes(passed=1)
    assert comparisons == [asked]


def test_unchanged_code_is_not_paired(recorded, comparisons):
    sustained(recorded)
    recorded.run("--gpuperf").stdout.re_match_lines([r"  work .*UNCHANGED"])
    assert comparisons == []


def test_what_is_slower_only_when_it_runs_on_fails_in_sustained_slots_alone(recorded, monkeypatch):
    """Slots of six hundred samples by the simulated GPU's clock: a busy machine's own holds fewer."""
    monkeypatch.setattr(blocks, "BURST_S", 0.004)

    def by_gpu_clock(gpu, *given, **more):
        return compare(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **more)

    monkeypatch.setattr(gate, "compare", by_gpu_clock)
    content = read_evidence(recorded.path / "baselines/simulated-gpu/test_suite.jsonl")
    baseline = content["tests"]["test_work[1024]"]["work"]["identity"]["code"]
    recorded.edit("conftest.py", "\ndef work(", f"{POWERED.replace('BASELINE', baseline)}\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Powered(")
    recorded.change_code()
    recorded.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*SAME"])
    sustained(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  SLOWER  on simulated-gpu \(time\)  x1\.0[23]\d \[.*  paired in sustained slots, \d+\+\d+ blocks,",
            r" +proven to be more than 0.5 % slower, in two processes",
        ]
    )
