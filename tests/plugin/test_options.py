"""Flags, ini settings and marker keywords are validated before anything runs."""

from __future__ import annotations

import shlex

import pytest

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.model.architectures import ARCHITECTURES, SPELLINGS
from pytest_gpuperf.read_options import ci_variable


@pytest.mark.parametrize(
    ("flag", "accepts"),
    [
        ("--gpuperf-arch=ninety", "accepts architectures separated by commas"),
        ("--gpuperf-arch=sm_999", "accepts architectures separated by commas, of sm_75, sm_80, *"),
        ("--gpuperf-arch=sm_90,sm_70", "accepts architectures separated by commas, of sm_75, sm_80, *"),
        ("--gpuperf-arch=sm_80a", "accepts architectures separated by commas"),
        ("--gpuperf-open=maybe", "accepts fail, warn"),
        ("--gpuperf-time=some", "accepts changed, all, auto"),
        ("--gpuperf-tolerance=5", "accepts a number from 0.0005 to 0.5"),
        ("--gpuperf-tolerance=nan", "accepts a number from 0.0005 to 0.5"),
        ("--gpuperf-cache=hot", "accepts cold, warm"),
        ("--gpuperf-timer=clock", "accepts auto, cupti, graph"),
        ("--gpuperf-budget=0", "accepts a number from 0.05 to 3600 seconds"),
        ("--update-baselines=some", "accepts new, changed, all"),
    ],
)
def test_a_bad_value_names_the_flag_and_what_it_accepts(suite, flag, accepts):
    result = suite.run("--gpuperf", flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{flag.partition('=')[0]}: *is not valid: it {accepts}*"])


@pytest.mark.parametrize(("text", "words"), [(None, "No such file"), ("{}", "it holds no task")])
def test_a_child_without_its_task_says_so(suite, text, words):
    if text is not None:
        suite.write("task.json", text)
    result = suite.run("--gpuperf-task=task.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--gpuperf-task=task.json: *{words}*"])


@pytest.mark.parametrize("flag", ["--collect-only", "--fixtures", "--markers"])
def test_the_command_of_the_job_may_ask_what_there_is(suite, monkeypatch, flag):
    monkeypatch.setenv("CI", "true")
    assert suite.run("--gpuperf", flag).ret == 0


def test_an_architecture_with_a_suffix_is_as_good_as_one_without(suite):
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_90a,sm_120f", "-k", "other")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*sm_90a*sm_120f*"])


def test_the_flag_accepts_the_architectures_that_the_compiler_room_knows():
    spelled = [f"{arch}{suffix}" for arch in ARCHITECTURES for suffix in ("", "a", "f")]
    assert tuple(filter(_has_limits, spelled)) == SPELLINGS


def _has_limits(arch: str) -> bool:
    try:
        limits_of(arch)
    except UnknownArchitecture:
        return False
    return True


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("flag", ["--gpuperf-strict", "--gpuperf-open=fail", "--gpuperf-advisory"])
def test_a_flag_of_the_gate_is_refused_where_nothing_is_gated(suite, flag, workers):
    result = suite.run(flag, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = flag.partition("=")[0]
    result.stderr.fnmatch_lines([f"*{name}: nothing is measured without --gpuperf, --update-baselines or *"])


@pytest.mark.parametrize("gate", ["--gpuperf", "--update-baselines"])
def test_the_same_flags_count_beside_the_gate(suite, gate):
    assert suite.run(gate, "--gpuperf-strict", "--gpuperf-advisory", "-k", "other").ret == 0


def test_flags_in_addopts_wait_for_the_run_that_gates(suite):
    suite.pytester.makeini("[pytest]\naddopts = --gpuperf-strict\ngpuperf_explain = true\n")
    assert suite.run("-k", "other").ret == 0
    suite.run("--gpuperf", "-k", "other").stdout.fnmatch_lines(["*gpuperf explains*"])


def test_a_bad_ini_value_names_the_setting(suite):
    suite.pytester.makeini("[pytest]\ngpuperf_cache = hot\n")
    result = suite.run("--gpuperf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ini setting gpuperf_cache: 'hot' is not valid*"])


def test_a_bad_number_in_the_ini_file_names_the_setting(suite):
    for given, words in (("much", "is not valid: it accepts a number from 0.0005 to 0.5 "), ("5", "'5*' is not valid")):
        suite.pytester.makeini(f"[pytest]\ngpuperf_tolerance = {given}\n")
        result = suite.run("--gpuperf")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*ini setting gpuperf_tolerance*{words.replace(chr(39), '')}*"])


def test_a_bad_switch_in_the_ini_file_names_the_setting(suite):
    suite.pytester.makeini("[pytest]\ngpuperf_strict = maybe\n")
    result = suite.run("--gpuperf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ini setting gpuperf_strict is not valid: it accepts true or false*"])


@pytest.mark.parametrize("word", ["yes", "1", "on", "True"])
def test_a_switch_in_the_ini_file_is_any_word_for_yes_or_no(suite, word):
    suite.pytester.makeini(f"[pytest]\ngpuperf = {word}\n")
    suite.run("--collect-only").stdout.fnmatch_lines(["gpuperf: measuring and gating*"])
    assert "gpuperf: " not in suite.run("--collect-only", "-o", "gpuperf=off").stdout.str()


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="the table is new in pytest 9")
def test_numbers_and_switches_are_such_in_the_table_of_pytest_9(suite):
    settings = "gpuperf = true\ngpuperf_tolerance = 0.03\ngpuperf_budget = 2\ngpuperf_kernel_timeout = 30"
    suite.write("pyproject.toml", f"[tool.pytest]\n{settings}\n")
    (suite.path / "pytest.ini").unlink(missing_ok=True)
    suite.run("--collect-only").stdout.fnmatch_lines(["gpuperf: *tolerance 3 %*"])


def test_ini_settings_count_and_flags_win(suite):
    suite.pytester.makeini("[pytest]\ngpuperf = true\ngpuperf_tolerance = 0.03\n")
    suite.run().stdout.fnmatch_lines(["gpuperf: measuring and gating, tolerance 3 %, *"])
    suite.run("--gpuperf-tolerance=0.01").stdout.fnmatch_lines(["gpuperf: *tolerance 1 %*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_folder_given_by_flag_is_relative_to_the_current_one(suite, monkeypatch, workers):
    suite.pytester.makeini("[pytest]\ngpuperf_baselines = of_ini\n")
    below = suite.path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    arguments = ("..", "--update-baselines", "--gpuperf-arch=sm_90", "-k", "other", *workers)
    suite.run(*arguments, "--gpuperf-baselines=mine", subprocess=True)
    suite.run(*arguments, subprocess=True)
    assert (below / "mine/sm_90/test_suite.jsonl").is_file()
    assert (suite.path / "of_ini/sm_90/test_suite.jsonl").is_file()
    result = suite.run("..", "--gpuperf", "--gpuperf-baselines=../of_ini", "-k", "other", *workers, subprocess=True)
    result.stdout.fnmatch_lines(["*doubling *UNCHANGED"])


@pytest.mark.parametrize("flag", ["--gpuperf-arch", "--gpuperf-baselines", "--gpuperf-ncu", "--update-baselines"])
def test_a_flag_with_an_empty_value_is_refused(suite, flag):
    """What a shell makes of a variable that is not set."""
    result = suite.run(f"{flag}=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{flag}: it was given without a value; leave it out, or give it one*"])


def test_an_empty_ini_setting_is_none(suite):
    suite.pytester.makeini("[pytest]\ngpuperf = true\ngpuperf_cache =\ngpuperf_arch =\n")
    suite.run("--collect-only").stdout.fnmatch_lines(["gpuperf: *tolerance 0.5 %*"])


NEAREST = """
import pytest

@pytest.mark.gpuperf(tolerance=0.03, cache="warm")
class TestNear:
    @pytest.mark.gpuperf(tolerance=0.01)
    def test_tolerance(self, gpuperf):
        assert gpuperf._settings.tolerance == 0.01 and gpuperf._settings.cache == "warm"

    @pytest.mark.gpuperf(cache="cold")
    def test_cache(self, gpuperf):
        assert gpuperf._settings.tolerance == 0.03 and gpuperf._settings.cache == "cold"
"""


def test_the_nearest_marker_wins(suite):
    suite.write("test_near.py", NEAREST)
    suite.run("test_near.py").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("tolerence=0.1", "unknown keyword 'tolerence' (known: tolerance, cache"),
        ("tolerance=5", "tolerance=5 is not valid"),
        ("cache='hot'", "cache='hot' is not valid"),
        ("cache=['cold']", "cache=['cold'] is not valid: it takes 'cold' or 'warm'"),
        ("budget_s=0", "budget_s=0 is not valid"),
        ("budget_s=True", "budget_s=True is not valid: it takes seconds, more than 0 and up to 3600"),
        ("budget_s=float('inf')", "budget_s=inf is not valid"),
        ("metrics=['memory']", "metrics=['memory'] is not valid: it takes names of metrics"),
        ("0.1", "takes keywords only"),
    ],
)
def test_a_bad_marker_names_the_test(suite, marker, words):
    suite.edit("test_suite.py", "def test_other", f"@pytest.mark.gpuperf({marker})\ndef test_other")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str() + result.stdout.str()
    assert "test_suite.py::test_other: @pytest.mark.gpuperf: " in text
    assert words in text


def test_the_marker_is_registered(suite):
    suite.run("--markers").stdout.fnmatch_lines(["@pytest.mark.gpuperf(tolerance=, *"])


def test_a_workload_name_used_twice_is_an_error(gpu_suite):
    gpu_suite.write(
        "test_twice.py",
        "def test_twice(gpuperf):\n    gpuperf(lambda: None, name='x')\n    gpuperf(lambda: None, name='x')\n",
    )
    result = gpu_suite.run("test_twice.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the workload name 'x' is used twice*"])


@pytest.mark.parametrize("flag", ["--gpuperf", "--gpuperf-ncu"])
def test_a_folder_of_baselines_that_is_not_there_is_refused_and_an_update_makes_it(suite, flag):
    result = suite.run(flag, "--gpuperf-baselines=basselines")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--gpuperf-baselines: there is no folder " in result.stderr.str()
    assert suite.run("--update-baselines", "--gpuperf-baselines=basselines", "-k", "other").ret == 0
    assert suite.run("--gpuperf", "--gpuperf-baselines=basselines", "-k", "other").ret == 0


def test_what_to_run_next_judges_and_records_in_the_same_folder_for_the_same_targets(suite):
    flags = ("--gpuperf-arch=sm_80", "--gpuperf-baselines=my perf")
    assert suite.run("--update-baselines", *flags).ret == 0
    suite.edit("other.cu", "int i =", "float s[64]; for (int k = 0; k < n; ++k) s[k % 64] = a[k]; int i =")
    suite.edit("other.cu", "a[i] * 2.0f", "s[n % 64]")
    result = suite.run("--gpuperf", *flags)
    (line,) = [line for line in result.stdout.lines if line.startswith("next: ")]
    again, accept = line.partition("; fix it, and run ")[2].split("; accept an intended change: ")
    assert again == "pytest --gpuperf --gpuperf-arch=sm_80 '--gpuperf-baselines=my perf' --lf"
    assert suite.run(*shlex.split(accept)[1:]).ret == 0
    assert suite.run(*shlex.split(again)[1:-1]).ret == 0
    assert not (suite.path / "baselines").exists()


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, False), ({"CI": "true"}, True), ({"CI": "1"}, True), ({"CI": ""}, False), ({"CI": "False"}, False),
        ({"TF_BUILD": "True"}, True), ({"JENKINS_URL": "x", "CI": "false"}, False), ({"BUILD_NUMBER": ""}, False),
    ],
)  # fmt: skip
def test_a_ci_service_is_told_by_its_variables(environment: dict[str, str], found: bool) -> None:
    assert bool(ci_variable(environment)) is found
