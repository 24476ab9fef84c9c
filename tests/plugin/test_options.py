"""Flags, ini settings and marker keywords are validated before anything runs."""

from __future__ import annotations

import contextlib
import shlex
import sys

import pytest

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.model.architectures import ARCHITECTURES, SPELLINGS
from pytest_gpuperf.options import Options
from pytest_gpuperf.read_options import ci_variable, read_options

GATE = "--gpuperf"
NOTHING = "nothing is measured without --gpuperf, --update-baselines or --gpuperf-ncu"
REFUSED = {
    (GATE, "--gpuperf-arch=ninety"): "--gpuperf-arch: 'ninety' is not valid: it accepts architectures separated by",
    (GATE, "--gpuperf-arch=sm_90,sm_70"): "it accepts architectures separated by commas, of sm_75, sm_80, ",
    (GATE, "--gpuperf-arch=sm_80a"): "it accepts architectures separated by commas",
    (GATE, "--gpuperf-open=maybe"): "--gpuperf-open: 'maybe' is not valid: it accepts fail, warn",
    (GATE, "--gpuperf-time=some"): "it accepts changed, all, auto",
    (GATE, "--gpuperf-tolerance=5"): "--gpuperf-tolerance: '5' is not valid: it accepts tight (0.005), st",
    (GATE, "--gpuperf-tolerance=nan"): "loose (0.05), or a number from 0.0005 to 0.5",
    (GATE, "--gpuperf-min-delta=-1"): "it accepts a number from 0 to 1e+06 microseconds",
    (GATE, "--gpuperf-cache=hot"): "it accepts cold, warm",
    (GATE, "--gpuperf-timer=clock"): "it accepts auto, cupti, graph",
    (GATE, "--gpuperf-report=out.pdf"): "accepts files that end in .json, .md, .html, and github, separated by",
    (GATE, "--gpuperf-report=,"): "accepts files that end in",
    (GATE, "--gpuperf-budget=0"): "it accepts a number from 0.05 to 3600 seconds",
    ("--update-baselines=some",): "--update-baselines: 'some' is not valid: it accepts new, changed, all",
    ("--update-baselines=",): "--update-baselines: it was given without a value; leave it out, or give it one",
    (GATE, "--gpuperf-arch="): "--gpuperf-arch: it was given without a value",
    (GATE, "--gpuperf-baselines="): "--gpuperf-baselines: it was given without a value",
    ("--gpuperf-ncu=",): "--gpuperf-ncu: it was given without a value",
    ("--gpuperf-strict",): f"--gpuperf-strict: {NOTHING}",
    ("--gpuperf-report=out.md",): "--gpuperf-report: nothing is measured without --gpuperf",
    ("--gpuperf-open=fail",): f"--gpuperf-open: {NOTHING}",
    ("--gpuperf-advisory", "--gpuperf-strict"): f"--gpuperf-strict, --gpuperf-advisory: {NOTHING}",
    ("--gpuperf-task=no.json",): "--gpuperf-task=no.json: [Errno 2] No such file",
    ("--gpuperf-task=task.json",): "--gpuperf-task=task.json: it holds no task",
    (GATE, "--gpuperf-baselines=basselines"): "--gpuperf-baselines: there is no folder ",
    ("--gpuperf-ncu", "--gpuperf-baselines=basselines"): "--gpuperf-baselines: there is no folder ",
    (GATE, "--gpuperf-against=HEAD", "--gpuperf-baselines=tests"): "--gpuperf-baselines cannot be combined",
    (GATE, "--gpuperf-against=HEAD", "--gpuperf-ncu"): "--gpuperf-against=HEAD compares no counters",
    (GATE, "--gpuperf-against=HEAD", "--gpuperf-against-env=nowhere"): "nowhere: name a folder with bin/python",
    ("--update-baselines", f"--gpuperf-against-env={sys.executable}"): f"{sys.executable} and --update-baselines",
    (GATE, "-o", "gpuperf_cache=hot"): "ini setting gpuperf_cache: 'hot' is not valid: it accepts cold, warm",
    (GATE, "-o", "gpuperf_tolerance=5"): "ini setting gpuperf_tolerance: '5.0' is not valid: it accepts tight (0.005)",
    (GATE, "-o", "gpuperf_strict=maybe"): "ini setting gpuperf_strict is not valid: it accepts true or false",
}


def options_of(pytester: pytest.Pytester, *arguments: str) -> Options:
    return read_options(pytester.parseconfig("-p", "no:cacheprovider", *arguments))


def test_a_bad_value_names_flag_or_setting_and_what_it_accepts(pytester: pytest.Pytester) -> None:
    (pytester.path / "task.json").write_text("{}")
    for arguments, words in REFUSED.items():
        with pytest.raises(pytest.UsageError) as refusal:
            options_of(pytester, *arguments)
        assert words in str(refusal.value), arguments


REPEATING = """
def pytest_addoption(parser):
    parser.addoption("--count", type=int, default=1)
    parser.addoption("--flake-finder", dest="flake_finder_enable", action="store_true", default=False)
"""
"""As pytest-repeat and pytest-flakefinder have them."""


def test_repeats_by_another_plugin_are_refused_where_baselines_are_compared(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(REPEATING)
    for repeat in ("--count=3", "--flake-finder"):
        for gate in (GATE, "--update-baselines"):
            with pytest.raises(pytest.UsageError, match=f"{repeat[:7]}.* gives each test new ids, which have no base"):
                options_of(pytester, gate, repeat)
        assert options_of(pytester, GATE, repeat, "--gpuperf-against=HEAD").against
        assert not options_of(pytester, repeat).active
    assert options_of(pytester, GATE, "--count=1").active


def test_command_of_the_job_may_ask_what_there_is(suite, monkeypatch):
    monkeypatch.setenv("CI", "true")
    for flag in ("--collect-only", "--fixtures", "--markers"):
        result = suite.run("--gpuperf", flag)
        assert (result.ret, "nothing was measured" in result.stdout.str()) == (0, False)


def test_values_of_flags_and_settings(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag wins over its setting; an empty setting is none; ``addopts`` waits for the run that gates."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makeini("[pytest]\naddopts = --gpuperf-strict\ngpuperf_tolerance = 0.03\ngpuperf_cache =\n")
    assert not options_of(pytester).active
    gated = options_of(pytester, GATE, "--gpuperf-arch=sm_90a,sm_120f", "--gpuperf-tolerance=0.01")
    assert (gated.active, gated.strict, gated.cache) == (True, True, "cold")
    assert (gated.archs, gated.tolerance, gated.limits().detect) == (("sm_90a", "sm_120f"), 0.01, 0.02)
    assert options_of(pytester, GATE).tolerance == 0.03
    for name, tolerance in {"tight": 0.005, "standard": 0.01, "loose": 0.05}.items():
        assert options_of(pytester, GATE, "-o", f"gpuperf_tolerance={name}").limits() == (tolerance, 2 * tolerance)
        assert gated.limits(name).tolerance == tolerance
    for word in ("yes", "1", "on", "True"):
        assert options_of(pytester, "-o", f"gpuperf={word}").enabled
    assert not options_of(pytester, "-o", "gpuperf=off").enabled
    advisory = options_of(pytester, "--update-baselines", "--gpuperf-advisory")
    assert (advisory.update, advisory.strict, advisory.open) == ("changed", False, "warn")


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="the table is new in pytest 9")
def test_numbers_and_switches_are_such_in_the_table_of_pytest_9(pytester: pytest.Pytester) -> None:
    settings = "gpuperf = true\ngpuperf_tolerance = 0.03\ngpuperf_budget = 2\ngpuperf_kernel_timeout = 30"
    (pytester.path / "pyproject.toml").write_text(f"[tool.pytest]\n{settings}\n")
    found = options_of(pytester)
    assert (found.enabled, found.tolerance, found.budget_s, found.kernel_timeout_s) == (True, 0.03, 2.0, 30.0)


def test_flag_accepts_the_architectures_that_the_compiler_room_knows():
    known = []
    for arch in (f"{arch}{suffix}" for arch in ARCHITECTURES for suffix in ("", "a", "f")):
        with contextlib.suppress(UnknownArchitecture):
            limits_of(arch)
            known.append(arch)
    assert tuple(known) == SPELLINGS


def test_folder_given_by_flag_is_relative_to_the_current_one(suite, monkeypatch):
    """Of pytest-xdist's workers too; an update makes one that is not there."""
    suite.pytester.makeini("[pytest]\ngpuperf_baselines = of_ini\n")
    below = suite.path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    arguments = ("..", "--update-baselines", "--gpuperf-arch=sm_90", "-k", "other", "-n", "2")
    suite.run(*arguments, "--gpuperf-baselines=mine")
    suite.run(*arguments)
    assert (below / "mine/sm_90/test_suite.jsonl").is_file()
    assert (suite.path / "of_ini/sm_90/test_suite.jsonl").is_file()
    result = suite.run("..", "--gpuperf", "--gpuperf-baselines=../of_ini", "-k", "other", "-n", "2")
    result.stdout.fnmatch_lines(["*doubling *UNCHANGED"])


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


def test_nearest_marker_wins_and_a_bad_one_names_its_test(suite):
    suite.write("test_near.py", NEAREST)
    suite.run("test_near.py").assert_outcomes(passed=2)
    for marker, words in (
        ("tolerence=0.1", "unknown keyword 'tolerence' (known: "), ("0.1", "takes keywords only"),
        ("budget_s=0", "budget_s=0 is not valid"), ("budget_s=float('inf')", "budget_s=inf is not valid"),
        ("budget_s=True", "budget_s=True is not valid: it takes seconds, more than 0 and up to 3600"),
    ):  # fmt: skip
        suite.write("test_near.py", NEAREST.replace('cache="cold"', marker))
        result = suite.run("test_near.py")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        text = result.stderr.str() + result.stdout.str()
        assert "test_near.py::TestNear::test_cache: @pytest.mark.gpuperf: " in text
        assert words in text


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


CI_VARIABLES: list[tuple[dict[str, str], bool]] = [
    ({}, False), ({"CI": "true"}, True), ({"CI": "1"}, True), ({"CI": ""}, False), ({"CI": "False"}, False),
    ({"TF_BUILD": "True"}, True), ({"JENKINS_URL": "x", "CI": "false"}, False), ({"BUILD_NUMBER": ""}, False),
]  # fmt: skip


def test_ci_service_is_known_by_its_variables() -> None:
    for environment, found in CI_VARIABLES:
        assert bool(ci_variable(environment)) is found, environment
