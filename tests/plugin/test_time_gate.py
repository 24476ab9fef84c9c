"""``pytest --gpuperf`` on a (simulated) GPU: times are compared with the baseline and gated."""

from __future__ import annotations


def test_unchanged_code_is_unchanged(recorded):
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines([r".*work +\S+ us -> \S+ us ±\S+ % .* \S+ GB/s.*UNCHANGED"])


def test_a_comment_leaves_it_unchanged(recorded):
    recorded.edit("work.cu", "// Copies", "// Copies, renamed and all")
    recorded.edit("work.cu", "float x =", "float value =")
    text = (recorded.path / "work.cu").read_text().replace("x = x *", "value = value *").replace("= x;", "= value;")
    recorded.write("work.cu", text)
    result = recorded.run("--gpuperf", "-k", "1024")
    result.stdout.re_match_lines([r".*work +\S+ us.*UNCHANGED"])


def test_a_faster_kernel_passes_with_a_word_and_fails_when_strict(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=60")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(passed=1)
    accept = (
        "the baseline is stale: accept the gain with pytest --update-baselines, or a later loss of as much goes unseen"
    )
    result.stdout.fnmatch_lines([f"1 workload is FASTER or BETTER than the baseline: {accept}"])
    strict = recorded.run("--gpuperf", "--gpuperf-strict", "-k", "1024")
    assert strict.ret == 1
    strict.stdout.re_match_lines(
        [
            r"work  FASTER  on simulated-gpu \(time\)  x0\.\d+ \[.*us$",
            r"    tolerance .*, paired, \d+ blocks, interval 95 % anytime$",
        ]
    )
    assert strict.stdout.str().count(accept) == 1


def test_changed_only_does_not_time_what_is_unchanged(recorded):
    result = recorded.run("--gpuperf", "--gpuperf-time=changed", "-v")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines([r"  work +UNCHANGED"])


def test_an_expected_regression_does_not_fail(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=125")
    mark = "@pytest.mark.xfail(raises=pytest_gpuperf.PerformanceRegression, reason='known', strict=True)"
    recorded.edit("test_suite.py", "@pytest.mark.param", f"import pytest_gpuperf\n{mark}\n@pytest.mark.param")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(xfailed=1)
    assert "SLOWER" in result.stdout.str()
    recorded.edit("test_suite.py", "-DSTEPS=125", "-DSTEPS=100")
    gone = recorded.run("--gpuperf", "-k", "1024")
    gone.assert_outcomes(failed=1)
    gone.stdout.fnmatch_lines(["*XPASS(strict)*known*"])


def test_verdicts_reach_the_controller_of_xdist(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=125")
    result = recorded.run("--gpuperf", "-n", "2", subprocess=True)
    result.assert_outcomes(failed=2, passed=1)
    assert "SLOWER" in result.stdout.str()


def test_verdicts_are_properties_in_junit(recorded):
    recorded.run("--gpuperf", "--junitxml=junit.xml", "-k", "1024")
    text = (recorded.path / "junit.xml").read_text()
    assert '<property name="gpuperf.work.simulated-gpu" value="UNCHANGED"' in text


def test_what_is_lost_without_cupti_is_told_unless_another_timer_was_asked_for(recorded):
    lost = "*: CUDA graphs take the times. Changes of kernels shorter than 20 us are harder to see*"
    recorded.run("--gpuperf").stdout.fnmatch_lines([lost])
    recorded.run("--gpuperf", "--gpuperf-timer=graph").stdout.no_fnmatch_line(lost)
