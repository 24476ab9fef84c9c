"""Records that a test did not reach or judge are missing; a measurement that failed is no pass; nothing is no success.

``test_honest_mistakes`` has the tests that were deleted, skipped or left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from suite_under_test import Suite

from pytest_gpuperf.cli.command_line import main

EXIT_NOTHING_MEASURED = 10
TEST = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    {data_first}
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    {all_compiled}
    r = gpuperf(first.launch(grid=2, block=256, args=(a, b, 512)), name="k1", bytes=1)
    {time_between}
    second = {second} or cuda_kernel("other.cu", "other")
    gpuperf(second.launch(grid=2, block=256, args=(a, b, 512)), name="k2")
"""
TIME, DATA = "assert r.bandwidth > 0", "assert gpu.to_host(a).size == 512"
COMPILED = f'other = cuda_kernel("other.cu", "other"); {DATA}'
MISSING = (
    "1 workload NOT-MEASURED on sm_80, sm_90: its test needs a GPU before this workload: test_h.py::test_h [[]k2[]]. "
    "To do: move *"
)


def h(suite: Suite, **lines: str) -> None:
    usual = {"data_first": "", "all_compiled": "", "time_between": "", "second": "None"}
    suite.write("test_h.py", TEST.format(**{**usual, **lines}))


@pytest.fixture
def known(suite: Suite) -> Suite:
    """Both workloads of ``test_h`` have baselines."""
    h(suite)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90", "test_h.py")
    return suite


def test_workload_behind_the_need_for_a_gpu_is_named(known: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert "NOT-MEASURED" not in known.run("--gpuperf", "test_h.py").stdout.str()
    h(known, time_between=TIME)
    result = known.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*k1 *UNCHANGED", MISSING])
    assert known.run("--gpuperf", "--gpuperf-open=fail", "test_h.py").ret == 1
    for end in ("return", "import pytest; pytest.skip('flaky')"):
        h(known, time_between=end)
        assert known.run("--gpuperf", "test_h.py").ret == 1


def test_data_before_the_first_kernel_leaves_nothing(known: Suite) -> None:
    """What was compiled before the data is reached."""
    h(known, all_compiled=COMPILED, second="other")
    result = known.run("--gpuperf", "test_h.py")
    assert (result.ret, "NOT-MEASURED" in result.stdout.str()) == (0, False)
    h(known, data_first=DATA)
    result = known.run("--gpuperf", "test_h.py")
    nothing = "ERROR: nothing was measured: 1 test ran and has no *"
    result.stdout.fnmatch_lines(["2 workloads NOT-MEASURED on *", nothing])
    assert result.ret == EXIT_NOTHING_MEASURED


# --- architectures -------------------------------------------------------------------------------

NARROWED = ('options=["-DSTEPS=100"]', 'options=["-DSTEPS=100"], arch="sm_90"')


@pytest.fixture
def two_architectures(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Under CI, with baselines for two architectures."""
    assert recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90").ret == 0
    monkeypatch.setenv("CI", "true")
    return recorded


def test_architecture_that_a_kernel_is_no_longer_compiled_for(two_architectures: Suite) -> None:
    two_architectures.edit("test_suite.py", *NARROWED)
    assert two_architectures.run("--gpuperf").ret == 0  # a GPU may have chosen it
    two_architectures.write("conftest.py", "")
    result = two_architectures.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR: 2 workloads NOT-MEASURED on sm_80: its test did not reach it: *"])
    (two_architectures.path / "baselines/sm_80/test_suite.jsonl").unlink()
    assert main(["baselines", "rm", "sm_80"]) == 0
    assert two_architectures.run("--gpuperf").ret == 0


def test_skip_for_want_of_a_gpu_that_is_there(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test was timed, so no evidence says which GPU there is."""
    monkeypatch.setenv("CI", "true")
    recorded.write("test_suite.py", (recorded.path / "test_suite.py").read_text().partition("def test_other")[0])
    recorded.edit("test_suite.py", "    result = gpuperf(", "    pytest.skip('needs a GPU')\n    result = gpuperf(")
    result = recorded.run("--gpuperf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: 2 workloads NOT-MEASURED on simulated-gpu: its test *(needs a GPU*"])


# --- measurements that failed --------------------------------------------------------------------

IN_THREAD = "import threading; one = threading.Thread(target=lambda: {}); one.start(); one.join()"
CAUGHT = "with pytest.raises(BaseException): {}"
RAISING = [
    (CAUGHT, "check=lambda: False"),
    (CAUGHT, "reset=lambda: 1 / 0"),
    (CAUGHT, "name='new', check=lambda: pytest.fail('no')"),
    (IN_THREAD, "check=lambda: False"),
    (f"{IN_THREAD}; pytest.skip('enough')", "check=lambda: False"),
]
RAISES = """
def test_raises_{number}(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a, b = gpu.random(512, seed=2), gpu.empty(512)
    launch = kernel.launch(grid=2, block=256, args=(a, b, 512))
    {line}
"""


@pytest.mark.parametrize("flags", [(), ("--gpuperf",), ("--update-baselines",)])
def test_measurement_that_raises_fails_its_test(recorded: Suite, flags: Sequence[str]) -> None:
    """Caught by the test, or in a thread, which Python ends alone."""
    raising = RAISING + [(CAUGHT, "accuracy=lambda: 1 / 0")] * bool(flags)  # a plain run does not measure that
    lines = [around.format(f"gpuperf(launch, {raised})") for around, raised in raising]
    tests = [RAISES.format(number=number, line=line) for number, line in enumerate(lines)]
    recorded.write("test_raises.py", "import pytest\n" + "".join(tests))
    before = recorded.baseline_files()
    ignored = "ignore::pytest.PytestUnhandledThreadExceptionWarning"
    result = recorded.run("test_raises.py", "-W", ignored, *flags)
    result.assert_outcomes(failed=len(tests))
    assert result.ret == 1
    assert recorded.baseline_files() == before


# --- nothing measured ----------------------------------------------------------------------------


def test_nothing_measured_fails(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("test_plain.py", "def test_one(): pass\ndef test_two(): pass\n")
    nothing = {
        ("-k", "nothing", "-n", "2"): "no test ran. *",
        ("test_plain.py",): "2 tests ran and have no kernel or time to judge. *",
    }
    for flags, why in nothing.items():
        result = suite.run("--gpuperf", *flags)
        assert result.ret == EXIT_NOTHING_MEASURED
        result.stdout.fnmatch_lines([f"ERROR: nothing was measured: {why}"])
    monkeypatch.delenv("PYTEST_ADDOPTS")  # leaves out the plugin of this flag
    assert suite.run("--gpuperf", "--setup-only").ret == EXIT_NOTHING_MEASURED


@pytest.mark.parametrize("flags", [("--gpuperf-ncu",), ("--gpuperf", "--gpuperf-ncu")])
def test_why_there_is_no_gpu_is_said_once(suite: Suite, flags: Sequence[str]) -> None:
    text = suite.run(*flags).stdout.str()
    assert text.count("hides every GPU") == 1
    assert ("judged by static evidence" in text) == ("--gpuperf" in flags)
