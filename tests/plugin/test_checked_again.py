"""``check`` runs again after the timing: a kernel that was right once and is wrong now has no time."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

ONCE = "{'work': lambda a, b, n, runs=[]: (runs.append(1), b.__setitem__(slice(None), a if len(runs) == 1 else 0))}"


def right_once(suite):
    suite.edit("conftest.py", '{"work": work,', f"{ONCE} | {{")


def times_of(suite):
    path = suite.path / "baselines/simulated-gpu/test_suite.jsonl"
    return set(read_evidence(path)["tests"]) if path.exists() else set()


def test_what_is_wrong_after_its_timing_fails_as_a_wrong_result(recorded):
    right_once(recorded)
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r".*WrongResult: work was right on its first run and wrong after \d+ more, so none of its times counts: .*"]
    )
    result.stdout.fnmatch_lines(["*if it works in place or adds to what it finds, give reset=*"])


def test_a_slower_kernel_that_turns_wrong_is_wrong_and_asks_no_second_process(recorded):
    right_once(recorded)
    recorded.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    recorded.in_second_process("raise SystemExit('asked')")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*work was right on its first run and wrong after*"])
    assert "  SLOWER" not in result.stdout.str()


def test_an_update_takes_nothing_that_turns_wrong(gpu_suite):
    right_once(gpu_suite)
    result = gpu_suite.run("--update-baselines")
    result.assert_outcomes(failed=2, passed=1)
    assert times_of(gpu_suite) == {"test_other"}


@pytest.mark.parametrize(("reset", "failed"), [("", 1), (", reset=lambda: b.fill(0)", 0), (", reset=lambda: None", 1)])
def test_what_adds_to_its_result_needs_a_reset_that_restores_it(gpu_suite, reset, failed):
    gpu_suite.edit("conftest.py", '"other": work', '"other": lambda a, b, n: b.__iadd__(a)')
    gpu_suite.edit("test_suite.py", "b = gpu.empty_like(a)\n    gpuperf", "b = gpu.zeros(512)\n    gpuperf")
    gpu_suite.edit("test_suite.py", 'name="doubling"', f'name="adding"{reset}')
    result = gpu_suite.run("--gpuperf", "-k", "other")
    result.assert_outcomes(failed=failed, passed=1 - failed)
    if failed and reset:
        result.stdout.fnmatch_lines(["*which restores all that a run changes*"])


def test_a_plain_run_checks_once(gpu_suite):
    right_once(gpu_suite)
    gpu_suite.run("-k", "1024").assert_outcomes(passed=1)


def test_a_second_process_that_finds_the_result_wrong_confirms_nothing(recorded):
    """It is the only one in which the kernel turns wrong."""
    right_once(recorded)
    recorded.edit("conftest.py", "len(runs) == 1", "len(runs) == 1 or not sys.modules.get('second')")
    recorded.in_second_process("sys.modules['second'] = sys")
    recorded.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["work  SLOWER *", "*not confirmed: the second process failed *: *was right on its first run and wrong after *"]
    )
