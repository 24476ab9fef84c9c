"""Other arguments than on record: the work as it is now against the work as it was recorded, never silently green."""

from __future__ import annotations

import pytest

ONE = ("-k", "1024")
OPEN = "--gpuperf-open=warn"
SLOW = 170
"""Steps that take about 60 % more time than the 100 on record."""


def slower(suite, steps=SLOW):
    suite.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")


def other_scalar(suite):
    suite.edit("test_suite.py", "args=(a, b, size)", "args=(a, b, size - 1)")


def added_parameter(suite):
    suite.edit("work.cu", "int n)", "int n, float scale)")
    suite.edit("work.cu", "b[i] = x;", "b[i] = x * scale;")
    suite.edit("test_suite.py", "args=(a, b, size)", "args=(a, b, size, 2.0)")
    suite.edit("conftest.py", "def work(a, b, n)", "def work(a, b, n, scale=2.0)")


def other_type(suite):
    suite.edit("work.cu", "int n)", "long long n)")


CHANGES = [
    (other_scalar, "argument 3 was int32=1024 and is int32=1023; the baseline ran with its own"),
    (added_parameter, "3 arguments became 4; the baseline ran with its own"),
    (other_type, "argument 3 was int32=1024 and is int64=1024; the baseline ran with its own"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_a_slower_kernel_is_red_with_other_arguments_too(recorded, change, words):
    change(recorded)
    slower(recorded)
    result = recorded.run("--gpuperf", OPEN, *ONE)
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    result.stdout.re_match_lines([r"work  SLOWER  .* x1\.[3-6]\d+ ", r" .* paired, \d+\+\d+ blocks", rf" .*{words}"])


def test_as_fast_a_kernel_passes_with_other_arguments(recorded):
    added_parameter(recorded)
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", "--gpuperf-tolerance=0.06", *ONE)  # it has 4 % more code
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1\.0|0\.9)\d* \[.*\] .* SAME"])


def test_each_side_gets_the_arguments_of_its_own_launch(recorded):
    other_scalar(recorded)
    recorded.edit("conftest.py", "    b[:] = a", "    b[:] = a\n    GIVEN.write(f'{n} ')")
    kept = "GIVEN = open('given', 'w')\n\ndef pytest_unconfigure():\n    GIVEN.close()\n\n"
    recorded.edit("conftest.py", "def work(", kept + "def work(")
    recorded.change_code()
    recorded.run("--gpuperf", *ONE).assert_outcomes(passed=1)
    given = (recorded.path / "given").read_text().split()
    assert set(given) == {"1023", "1024"}
    assert given.count("1024") > 50


# --- what cannot be formed again -----------------------------------------------------------------


def test_arrays_of_other_shapes_are_not_comparable(recorded):
    recorded.edit("test_suite.py", "gpu.random(size,", "gpu.random(size + 64,")
    slower(recorded)
    result = recorded.run("--gpuperf", OPEN, *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [
            r".*work  NOT-COMPARABLE  on simulated-gpu \(time\)  x1\.[3-6]\d+  6\.\d+ us -> \d+\.?\d* us",
            r" .*against the recorded time",
            r" +the baseline cannot be launched as it was: the record names 2 arrays float32\[1024\], and .*: record "
            r"the baseline anew .*; argument 1 was float32\[1024\] and is float32\[1088\]",
        ]
    )
    recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE).assert_outcomes(failed=1)


def test_a_recorded_argument_that_is_none_is_never_launched_with(recorded):
    path = recorded.path / "baselines" / "simulated-gpu" / "test_suite.jsonl"
    path.write_text(path.read_text().replace("int32=1024", "object=7"))
    slower(recorded)
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  NOT-COMPARABLE *", "*cannot be launched as it was: *argument 3 was '*"])
