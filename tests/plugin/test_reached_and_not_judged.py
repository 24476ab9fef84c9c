"""A test that comes to its kernel, and not to all verdicts on it: what has no verdict is no pass."""

from __future__ import annotations

import pytest

from pytest_gpuperf.cli.command_line import main

LAUNCH = "    result = gpuperf(kernel.launch("
TIMED = """\
    result = gpuperf(kernel.launch(grid=8, block=256, args=(a, b, size)), bytes=2 * a.nbytes,
                     check=lambda: gpu.assert_equal(b, a))
    assert result.time_ns > 0
"""
"""The last lines of the test that has several sizes."""


@pytest.fixture
def under_ci(recorded, monkeypatch):
    """The suite with its baselines under CI; its kernel has other machine code, so its time is to be proven."""
    monkeypatch.setenv("CI", "true")
    recorded.change_code()
    return recorded


def instead(suite, lines):
    suite.edit("test_suite.py", TIMED, lines)


@pytest.mark.parametrize("end", ["pytest.skip('flaky')", "pytest.xfail('flaky')", "pytest.importorskip('no_such')"])
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_test_that_ends_between_its_kernel_and_its_time(under_ci, end, workers):
    """Its workload has the kernel's name, under which its machine code was judged."""
    under_ci.edit("test_suite.py", LAUNCH, f"    {end}\n{LAUNCH}")
    result = under_ci.run("--gpuperf", *workers, subprocess=bool(workers))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: 2 workloads NOT-MEASURED on simulated-gpu: its test *"])


def test_no_test_of_the_run_was_timed(under_ci):
    """Then no evidence says which GPU there is."""
    under_ci.write("test_suite.py", (under_ci.path / "test_suite.py").read_text().partition("def test_other")[0])
    under_ci.edit("test_suite.py", LAUNCH, f"    pytest.skip('needs a GPU')\n{LAUNCH}")
    result = under_ci.run("--gpuperf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: 2 workloads NOT-MEASURED on simulated-gpu: its test *(needs a GPU*"])


@pytest.mark.parametrize("raised", ["check=lambda: False", "reset=lambda: 1 / 0"])
def test_a_measurement_whose_error_is_caught(under_ci, raised):
    launch = "kernel.launch(grid=8, block=256, args=(a, b, size))"
    instead(under_ci, f"    with pytest.raises(Exception):\n        gpuperf({launch}, {raised})\n")
    result = under_ci.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "work  NOT-MEASURED  on simulated-gpu (time)", "*its measurement did not come to an end: gpuperf(...) raised*"
    ])  # fmt: skip


@pytest.mark.parametrize("before", [None, "--update-baselines=new"], ids=["new", "its machine code recorded"])
@pytest.mark.parametrize(
    "lines",
    [
        "    launch = cuda_kernel('other.cu', 'other').launch(1, 32, (gpu.empty(1), gpu.empty(1), 0))\n",
        "    def launch(): ...\n",
    ],
    ids=["launch", "callable"],
)
def test_a_measurement_that_was_never_recorded_and_whose_error_is_caught(recorded, monkeypatch, lines, before):
    recorded.write(
        "test_new.py",
        f"import pytest\ndef test_new(cuda_kernel, gpu, gpuperf):\n{lines}"
        "    with pytest.raises(AssertionError):\n        gpuperf(launch, name='new', check=lambda: False)\n",
    )
    if before:
        recorded.run(before)
    result = recorded.run("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines([
        "test_new.py::test_new: new has no baseline of its time, and its measurement did not come to an end: *"
    ])  # fmt: skip
    monkeypatch.setenv("CI", "true")
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["new  NOT-MEASURED  on simulated-gpu (time)"])


@pytest.mark.parametrize("flags", [(), ("--gpuperf",), ("--update-baselines",)])
@pytest.mark.parametrize("after", ["", "    pytest.skip('enough')\n"], ids=["passed", "skipped"])
@pytest.mark.parametrize("raised", ["check=lambda: False", "check=lambda: pytest.fail('no')", "reset=lambda: 1 / 0"])
def test_what_a_workload_raises_in_a_thread_fails_the_test(recorded, raised, after, flags):
    """Python ends the thread alone, and pytest only warns."""
    launch = "kernel.launch(grid=8, block=256, args=(a, b, size))"
    instead(recorded, (
        f"    import threading\n    thread = threading.Thread(target=lambda: gpuperf({launch}, {raised}))\n"
        f"    thread.start()\n    thread.join()\n{after}"
    ))  # fmt: skip
    recorded.change_code()
    before = recorded.baseline_files()
    result = recorded.run("-k", "test_work", "-W", "ignore::pytest.PytestUnhandledThreadExceptionWarning", *flags)
    result.assert_outcomes(failed=2, deselected=1)
    assert result.ret == 1
    assert recorded.baseline_files() == before


def test_an_error_beside_the_time_that_is_caught(recorded, monkeypatch):
    launch = "kernel.launch(grid=8, block=256, args=(a, b, size))"
    instead(
        recorded, f"    try:\n        gpuperf({launch}, accuracy=lambda: 0.5)\n    except ZeroDivisionError: pass\n"
    )
    assert recorded.run("--update-baselines=all").ret == 0
    monkeypatch.setenv("CI", "true")
    assert recorded.run("--gpuperf").ret == 0
    recorded.edit("test_suite.py", "lambda: 0.5", "lambda: 1 / 0")
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["work  NOT-MEASURED  on simulated-gpu (accuracy)"])


# --- machine code -------------------------------------------------------------------------------


@pytest.fixture
def two_architectures(recorded, monkeypatch):
    """Without a GPU, under CI, with baselines for two architectures."""
    assert recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90").ret == 0
    monkeypatch.setenv("CI", "true")
    recorded.write("conftest.py", "")
    return recorded


def test_a_kernel_that_is_no_longer_compiled_for_an_architecture_on_record(two_architectures):
    two_architectures.edit("test_suite.py", 'options=["-DSTEPS=100"]', 'options=["-DSTEPS=100"], arch="sm_90"')
    result = two_architectures.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "work  NOT-MEASURED  on sm_80 (static)", "*brings none for this architecture. Launch a kernel of cuda_kernel*"
    ])  # fmt: skip
    (two_architectures.path / "baselines/sm_80/test_suite.jsonl").unlink()
    assert main(["baselines", "rm", "sm_80"]) == 0
    assert two_architectures.run("--gpuperf").ret == 0


def test_a_gpu_may_have_chosen_the_architecture(recorded, monkeypatch):
    """Each machine records the one that its GPU has."""
    assert recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90").ret == 0
    monkeypatch.setenv("CI", "true")
    recorded.edit("test_suite.py", 'options=["-DSTEPS=100"]', 'options=["-DSTEPS=100"], arch="sm_90"')
    assert recorded.run("--gpuperf").ret == 0


def test_a_callable_in_the_place_of_a_kernel(two_architectures):
    text = (two_architectures.path / "test_suite.py").read_text()
    kernel = '    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])\n    a = gpu.random(size, seed=1)\n'
    text = text.replace(kernel, "").replace("    b = gpu.empty_like(a)\n", "", 1)
    two_architectures.write("test_suite.py", text.replace(TIMED, "    gpuperf(lambda: None, name='work')\n"))
    result = two_architectures.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["work  NOT-MEASURED  on sm_80, sm_90 (static)"])
