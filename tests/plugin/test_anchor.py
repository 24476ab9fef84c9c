"""The anchor: steps that pass, or are accepted one by one, add up, and are red before they have added up to much."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import Suite

STEPS, INSTRUCTION_NS, COMMITS = 1000, 40.0, 20
QUICK = ("--gpuperf-rounds=4", "--gpuperf-processes=1", "--gpuperf-force-update", "-k", "1024")
NODE = "test_suite.py::test_work[1024]"


SAME_SPEED = """
from simulated_gpu import SimulatedKernel
class SAME_SPEED(SimulatedKernel):
    def __init__(self, gpu):
        self._device = gpu
    def duration_ns(self, grid):
        return 42000.0
    def __call__(self, grid, block, args, dynamic_shared_bytes):
        args[1][:] = args[0]
        self._device.elapsed_ns += self.duration_ns(grid)
"""


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
    file = read_evidence(suite.path / "baselines/simulated-gpu/test_suite.json")
    return file["tests"]["test_work[1024]"]["work"]


def accepted_on_purpose(record: dict) -> dict:
    """The code that the gate measures ``record`` against: a step that only the update proved is an accepted one."""
    return record.get("anchor", record)["identity"]


def first_red(suite: Suite, *update: str) -> tuple[int, str]:
    """The first commit of +0.4 % that the gate fails, each being followed by an update, and what it says."""
    for number in range(1, COMMITS + 1):
        commit(suite, number)
        gated = suite.run("--gpuperf", "-k", "1024")
        if gated.ret:
            return number, gated.stdout.str()
        assert suite.run(*update, *QUICK).ret == 0
    pytest.fail(f"{COMMITS} commits of +0.4 % were green")


def test_a_frog_that_is_updated_with_every_commit_is_red_by_the_third(frog: Suite) -> None:
    before = on_record(frog)
    number, said = first_red(frog, "--update-baselines")
    assert number <= 3
    assert "  SLOWER  " in said
    assert accepted_on_purpose(on_record(frog)) == before["identity"]


@pytest.mark.parametrize("update", [("--update-baselines=all",), ("--update-baselines", NODE)], ids=["all", "named"])
def test_a_frog_whose_every_step_is_accepted_is_red_by_the_third(frog: Suite, update: tuple[str, ...]) -> None:
    number, said = first_red(frog, *update)
    assert number <= 3
    assert " % slower than its anchor of " in said
    assert ", by 2 accepted steps and this change; proven to be more than 0.5 % slower, in two processes" in said
    assert "If this change is intended: pytest --update-baselines=anchor, and commit what it writes." in said


def test_what_was_accepted_in_one_step_stays_red_until_the_anchor_follows(frog: Suite) -> None:
    commit(frog, 1, percent=5)
    updated = frog.run("--update-baselines", *QUICK)
    assert updated.ret == 0
    updated.stdout.fnmatch_lines(["on record now, and slower than what was last accepted on purpose: * by [45].? %. *"])
    moved = on_record(frog)
    assert moved["anchor"]["proven"]
    for flags in ((), ("--gpuperf-changed",)):
        gated = frog.run("--gpuperf", "-k", "1024", *flags)
        assert gated.ret == 1
        gated.stdout.fnmatch_lines([
            "    [45].? % slower than its anchor of *, by 1 accepted step, as was proven when they were accepted",
            "If this change is intended: pytest --update-baselines=anchor, and commit what it writes.",
        ])  # fmt: skip
    accepted = frog.run("--update-baselines=anchor", *QUICK)
    assert accepted.ret == 0
    accepted.stdout.re_match_lines([r".*\[work\] +simulated-gpu .* its own anchor$", "1 baseline written"])
    assert on_record(frog) == {name: value for name, value in moved.items() if name not in ("anchor", "history")}
    assert frog.run("--gpuperf", "-k", "1024").ret == 0


def test_what_another_update_has_recorded_meanwhile_is_not_accepted_on_purpose(frog: Suite) -> None:
    """Its code is other code, which nobody who accepts the drift of this one has seen."""
    commit(frog, 1, percent=5)
    assert frog.run("--update-baselines", *QUICK).ret == 0
    mine = frog.path / "baselines/simulated-gpu/test_suite.json"
    before = mine.read_text()
    commit(frog, 2, percent=5)
    assert frog.run("--update-baselines", *QUICK).ret == 0
    theirs = mine.read_text()
    mine.write_text(before)
    commit(frog, 1, percent=5)
    hook = f"from pathlib import Path\n    Path({str(mine)!r}).write_text({theirs!r})"
    conftest = (frog.path / "conftest.py").read_text()
    first = "@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish(session):"
    frog.write("conftest.py", f"{conftest}\n{first}\n    {hook}\n")
    accepted = frog.run("--update-baselines=anchor", *QUICK)
    assert accepted.ret == 11
    accepted.stdout.fnmatch_lines([
        "*test_work?1024? ?work?: another update has recorded other work meanwhile: run this one again"
    ])  # fmt: skip
    assert mine.read_text() == theirs


def test_what_is_accepted_on_purpose_is_its_own_anchor_at_once(frog: Suite) -> None:
    commit(frog, 1, percent=3)
    assert frog.run("--update-baselines=anchor", *QUICK).ret == 0
    assert "anchor" not in on_record(frog)
    gated = frog.run("--gpuperf", "-k", "1024")
    assert gated.ret == 0
    assert "anchor x" not in gated.stdout.str()


def test_a_drift_that_a_second_process_does_not_see_is_not_red(frog: Suite) -> None:
    commit(frog, 1, percent=0.8)
    assert frog.run("--update-baselines", *QUICK, NODE).ret == 0
    commit(frog, 2, percent=0.8)
    frog.in_second_process("SimulatedGpu.load = lambda gpu, binary: SAME_SPEED(gpu)")
    frog.write("conftest.py", (frog.path / "conftest.py").read_text() + SAME_SPEED)
    gated = frog.run("--gpuperf", "-k", "1024")
    assert gated.ret == 0
    gated.stdout.fnmatch_lines(["*1.? % slower than its anchor of *0.5 % slower in one process, and not in a second*"])


def test_code_that_comes_back_to_its_anchor_has_none(frog: Suite) -> None:
    first = on_record(frog)
    commit(frog, 1, percent=3)
    assert frog.run("--update-baselines", *QUICK).ret == 0
    commit(frog, 0)
    gated = frog.run("--gpuperf", "-k", "1024")
    gated.stdout.re_match_lines([r"  work .* anchor x1\.000 +FASTER"])
    assert frog.run("--update-baselines", *QUICK).ret == 0
    assert "anchor" not in on_record(frog)
    assert on_record(frog)["identity"] == first["identity"]


def test_what_passed_keeps_its_record_unless_its_test_is_named(frog: Suite) -> None:
    commit(frog, 1)
    before = on_record(frog)
    for arguments in ((), ("test_suite.py",)):
        updated = frog.run("--update-baselines", *QUICK, *arguments)
        updated.stdout.re_match_lines([
            r"  work .* (SAME|NOT-SLOWER)$",
            r"0 baselines written: nothing is proven to have changed \(a test given by its node id is .*",
        ])  # fmt: skip
        assert on_record(frog) == before
    frog.run("--update-baselines", *QUICK, "test_suite.py::test_work").stdout.fnmatch_lines(["2 baselines written"])
    assert on_record(frog)["identity"] != before["identity"]
    assert on_record(frog)["anchor"]["identity"] == before["identity"]
