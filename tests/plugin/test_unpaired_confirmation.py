"""What rounds alone call slower is slower in two processes, or nothing is held against it."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree

import pytest
from recorded_baselines import baselines_of
from suite_under_test import CONFIRMS

CALLABLE = """
def test_two_kernels(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random(512, seed=2)
    launch = kernel.launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512))
    def twice():
        for _ in range(TIMES):
            launch()
    gpuperf(twice)
"""
IN_TWO = r" +proven to be more than 2 % slower, in two processes; a callable has no machine code to compare: .*"


@pytest.fixture
def callable_suite(gpu_suite, shared_folder):
    """A test of a callable with its baseline, recorded once."""
    gpu_suite.write("test_suite.py", CALLABLE.replace("TIMES", "2"))
    files = {name: (gpu_suite.path / name).read_text() for name in ("work.cu", "test_suite.py", "conftest.py")}
    flags = ("--update-baselines", "--gpuperf-processes=2", "--gpuperf-rounds=8")
    baselines = baselines_of(shared_folder / "callable", files, *flags)
    shutil.copytree(baselines, gpu_suite.path / "baselines")
    return gpu_suite


@pytest.fixture
def slower(callable_suite):
    """The same, and the callable launches three times what it launched twice."""
    callable_suite.write("test_suite.py", CALLABLE.replace("TIMES", "3"))
    return callable_suite


def only_at_first(suite, first, second="1"):
    """Let the kernel be slower by a factor in the process that gates, and by another in the one that confirms."""
    slow = f"{{'work': {second} if confirms(config) else {first}}}"
    suite.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(slow={slow}, ")


# --- two processes -------------------------------------------------------------------------------


def test_a_slower_callable_fails_after_two_processes_saw_it(slower):
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"twice  SLOWER  on simulated-gpu \(time\)  x1\.5\d* .* unpaired$",
            IN_TWO,
            r" +not paired: a callable has no machine code of its own.*",
        ],
        consecutive=True,
    )


def test_a_slower_callable_names_the_kernels_it_spends_its_time_in(slower):
    kernels = "{'_Z4workPf': 20000.0, **{f'k{i}': 900.0 - i for i in range(9)}}"
    slower.edit("conftest.py", "def work(", f"import simulated_gpu\n\nsimulated_gpu.KERNELS = {kernels}\n\ndef work(")
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["twice  SLOWER *unpaired", "*its kernels: work 20 us, k0 900 ns, *, and 2 more"])


def test_a_callable_that_the_first_rounds_leave_open_gets_more_of_them(callable_suite):
    callable_suite.edit("test_suite.py", "STEPS=100", "STEPS=107")
    result = callable_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"  twice +\S+ us +±0.0[0-7] %.*SLOWER"])  # four rounds resolve no better than 0.1 %


def test_a_budget_that_the_first_rounds_spend_leaves_the_second_process_no_more_of_them(slower):
    slower.edit("test_suite.py", "gpuperf):", "gpuperf, request):")
    slower.edit("test_suite.py", "def twice():", f"confirms = {CONFIRMS}\n    def twice():")
    counted = "__import__('time').sleep(0.004)\n        confirms and open('runs', 'a').write('x')\n        for"
    slower.edit("test_suite.py", "for", counted)
    result = slower.run("--gpuperf", "--gpuperf-budget=0.05")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([IN_TWO])
    runs = (slower.path / "runs").stat().st_size
    assert 4 * 5 < runs < 8 * 5 + 10  # rounds of five samples, and those of the warm-up


def test_under_xdist_too(slower):
    result = slower.run("--gpuperf", "-n", "1", "--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([IN_TWO])
    properties = ElementTree.parse(slower.path / "junit.xml").getroot().iter("property")
    assert {one.get("name"): one.get("value") for one in properties}["gpuperf.twice.simulated-gpu"] == "SLOWER"


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (1.1, 1, "slower in one process and not in a second: it differs from process to process"),
        (1.045, 1.022, "slower in one process and less than 5 % in a second: it lies between the two tolerances"),
    ],
)
def test_slower_in_one_process_and_not_in_the_second_passes(callable_suite, first, second, words):
    only_at_first(callable_suite, first, second)
    result = callable_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*twice  INCONCLUSIVE  on simulated-gpu*",
            f"*suspected slower, not confirmed: {words}; proven to be more than 2 % slower; a callable has no *",
        ]
    )


def test_a_slower_callable_that_is_expected_to_be_is_confirmed_and_does_not_fail(slower):
    slower.edit("test_suite.py", "def test_two", "import pytest\n\n@pytest.mark.gpuperf(xfail='known')\ndef test_two")
    result = slower.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([IN_TWO])


def test_an_update_takes_what_a_second_process_has_confirmed(slower):
    result = slower.run("--gpuperf", "--update-baselines", "--gpuperf-processes=1", "--gpuperf-rounds=2")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([IN_TWO, r"\d baselines? written"])


# --- the second process goes wrong ---------------------------------------------------------------


def assert_suspect(suite, words, *flags):
    result = suite.run("--gpuperf", *flags)
    result.assert_outcomes(failed=1)
    unheard = "*suspected slower, and no second process could say: "
    result.stdout.fnmatch_lines(["* SUSPECT *", f"{unheard}{words}; proven to be more *"])


def test_without_any_confirmation_the_flag_is_named(slower):
    words = "--gpuperf-confirmations=0 allows none"
    assert_suspect(slower, words, "--gpuperf-confirmations=0")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import os; os._exit(3)", "the second process failed [(]pytest exit status 3[)]"),
        ("import pytest; pytest.skip('not today')", "the second process did not come to this workload"),
    ],
)
def test_a_second_process_that_could_not_speak_leaves_a_suspect(slower, statement, words):
    slower.in_second_process(statement)
    assert_suspect(slower, words)


def test_disturbed_rounds_of_the_second_process_confirm_nothing(slower):
    busy = "DeviceState(other_processes=(7,)) if confirms(config) else None"
    slower.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(state={busy}, ")
    slower.edit(
        "conftest.py", "import pytest\n", "import pytest\nfrom pytest_gpuperf.model.timed_round import DeviceState\n"
    )
    assert_suspect(slower, "its rounds were disturbed, so they prove nothing")


def test_a_skip_behind_a_workload_hides_no_regression(slower):
    text = (slower.path / "test_suite.py").read_text()
    slower.write("test_suite.py", f"import pytest\n{text}    pytest.skip('not here')\n")
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["twice  SLOWER  on *"])


# --- kernels whose baseline cannot be run again --------------------------------------------------

ONE = ("-k", "1024")


@pytest.fixture
def without_cubins(recorded):
    """Kernels that are slower than a record whose machine code is missing."""
    shutil.copytree(recorded.path / "baselines" / "cubins", recorded.path / "kept")
    shutil.rmtree(recorded.path / "baselines" / "cubins")
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    return recorded


def test_a_kernel_whose_baseline_is_missing_fails_after_two_processes_saw_it(without_cubins):
    result = without_cubins.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER  *unpaired",
            "*instructions 116 -> 136*",
            "*proven to be more than 2 % slower, in two processes; the source and its machine code changed",
            "*not paired: *the baseline's machine code is missing*",
        ]
    )


def test_a_second_process_that_could_pair_does_not_confirm_rounds(without_cubins):
    folder = "item.config.rootpath / 'baselines' / 'cubins'"
    without_cubins.in_second_process(
        f"import shutil; shutil.copytree(item.config.rootpath / 'kept', {folder}, dirs_exist_ok=True)"
    )
    words = "it could pair the two, and the first process could not"
    assert_suspect(without_cubins, words, *ONE)


def test_a_second_process_that_runs_other_code_confirms_nothing(without_cubins):
    steps = f"['-DSTEPS=' + ('130' if {CONFIRMS} else '120')]"
    without_cubins.edit("test_suite.py", '["-DSTEPS=120"]', steps)
    without_cubins.edit("test_suite.py", "gpuperf, size)", "gpuperf, size, request)")
    words = "it ran other code or other arguments: seed what is random, and do not edit during a run"
    assert_suspect(without_cubins, words, *ONE)
