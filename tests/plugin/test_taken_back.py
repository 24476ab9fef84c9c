"""A run is as red as its verdicts, whatever a hook, an exit or another plugin makes of pytest's own count."""

from __future__ import annotations

import pytest

EXIT_VANISHED = 13
HOOKS = {
    "a report": """
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome = "passed"
    return report
""",
    "an exception": """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call():
    try:
        return (yield)
    except BaseException:
        return None
""",
}
"""Of a conftest; each takes something back."""


@pytest.fixture
def slower(recorded):
    """On a machine without a GPU, with double precision where there was none: WORSE."""
    recorded.write("conftest.py", "import pytest\n")
    recorded.edit("work.cu", "float x = a[i];", "double x = a[i];")
    return recorded


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_failure_that_a_hook_takes_back(slower, hook, workers):
    slower.write("conftest.py", f"import pytest\n{HOOKS[hook]}")
    result = slower.run("--gpuperf", *workers, subprocess=bool(workers))
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR: the gate fails 2 tests that pytest does not call failed: test_suite.py::test_work*1024*. To do: *"]
    )


def test_an_exit_after_a_failure(slower):
    slower.write("test_zz.py", "import pytest\ndef test_z():\n    pytest.exit('enough', returncode=0)\n")
    assert slower.run("--gpuperf").ret == 1


def assert_ends_untold(slower, workers, status):
    """Before its verdicts are told; pytest-xdist calls its worker crashed."""
    result = slower.run("--gpuperf", *workers, subprocess=True)
    assert result.ret == status
    if not workers:
        result.stderr.fnmatch_lines(["gpuperf: this run ended before its verdicts were told: *"])


@pytest.mark.parametrize("code", [0, 256])
@pytest.mark.parametrize(("workers", "status"), [((), EXIT_VANISHED), (("-n", "1"), 1)], ids=["alone", "xdist"])
def test_an_exit_of_the_process(slower, workers, status, code):
    slower.write("test_a.py", f"import os\ndef test_a():\n    os._exit({code})\n")
    assert_ends_untold(slower, workers, status)


@pytest.mark.parametrize("call", ["execv('/bin/true', ['true'])", "execlp('true', 'true')"])
@pytest.mark.parametrize(("workers", "status"), [((), EXIT_VANISHED), (("-n", "1"), 1)], ids=["alone", "xdist"])
def test_another_program_in_the_place_of_the_run(slower, call, workers, status):
    slower.write("test_zz.py", f"import os\ndef test_z():\n    os.{call}\n")
    assert_ends_untold(slower, workers, status)


@pytest.mark.parametrize("red", [False, True], ids=["green", "red"])
def test_another_program_after_the_verdicts(recorded, red):
    call = "os.execlp('echo', 'echo', 'another', 'program')"
    recorded.write("conftest.py", f"import os, sys\ndef pytest_unconfigure():\n    sys.stdout.flush()\n    {call}\n")
    if red:
        recorded.edit("work.cu", "float x = a[i];", "double x = a[i];")
    result = recorded.run("--gpuperf", subprocess=True)
    assert result.ret == red
    assert ("another program" in result.outlines) is not red


def test_a_program_that_is_not_there_ends_nothing(recorded):
    recorded.write(
        "test_a.py",
        "import os, pytest\ndef test_a():\n    with pytest.raises(OSError):\n        os.execlp('no-such', 'no-such')\n",
    )
    assert recorded.run("--gpuperf", subprocess=True).ret == 0


@pytest.mark.parametrize("red", [False, True], ids=["green", "red"])
def test_an_exit_after_the_verdicts_keeps_their_status(recorded, red):
    recorded.write("conftest.py", "import os\ndef pytest_unconfigure():\n    os._exit(0)\n")
    if red:
        recorded.edit("work.cu", "float x = a[i];", "double x = a[i];")
    assert recorded.run("--gpuperf", subprocess=True).ret == red


@pytest.mark.parametrize("call", ["_exit(0)", "execv('/bin/true', ['true'])"])
def test_an_end_of_a_forked_process_is_its_own(recorded, call):
    recorded.write(
        "test_a.py",
        f"import os\ndef test_a():\n    child = os.fork()\n    if not child:\n        os.{call}\n"
        "    assert os.waitpid(child, 0)[1] == 0\n",
    )
    assert recorded.run("--gpuperf", subprocess=True).ret == 0


@pytest.mark.parametrize("code", [256, -512])
def test_an_exit_that_the_system_would_take_for_a_success_is_an_interruption(recorded, code):
    recorded.write("test_zz.py", f"import pytest\ndef test_z():\n    pytest.exit('enough', returncode={code})\n")
    assert recorded.run("--gpuperf").ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--gpuperf-open=fail",), EXIT_VANISHED)])
def test_an_exit_before_the_last_test(recorded, flags, status):
    recorded.write("test_zz.py", "import pytest\ndef test_z():\n    pytest.exit('enough', returncode=0)\n")
    recorded.write("test_zzz.py", "def test_never(cuda_kernel):\n    pass\n")
    result = recorded.run("--gpuperf", *flags)
    assert result.ret == status
    result.stdout.fnmatch_lines(
        ["*2 of 5 tests did not come to an end, and what did not run is not proven: test_zz.py::test_z and 1 more. *"]
    )


def test_an_update_is_not_held_against_what_it_records(slower):
    assert slower.run("--update-baselines").ret == 0


ENDS = {
    "a wrapper": (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_sessionfinish(session):\n    yield\n    session.exitstatus = 0\n",
        1,
    ),
    "an exit": ("def pytest_sessionfinish():\n    pytest.exit('enough', returncode=0)\n", EXIT_VANISHED),
    "an exit of Python": ("def pytest_sessionfinish():\n    raise SystemExit(0)\n", EXIT_VANISHED),
    "a wrapper with a status beyond all": (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_sessionfinish(session):\n    yield\n    session.exitstatus = 256\n",
        1,
    ),
    "a command": ("@pytest.hookimpl(wrapper=True)\ndef pytest_cmdline_main():\n    yield\n    return 0\n", 1),
}
"""Of a conftest; each ends a red run as a green one, and the status that it has all the same."""


@pytest.mark.parametrize("end", ENDS)
def test_an_end_of_the_run_that_calls_it_green(slower, end):
    text, status = ENDS[end]
    slower.write("conftest.py", f"import pytest\n{text}")
    result = slower.run("--gpuperf", subprocess=True)
    assert result.ret == status
    result.stderr.fnmatch_lines(["gpuperf: this run ended *: see to the test, conftest or plugin that ends it"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_count_of_failures_that_a_hook_takes_back(slower, workers):
    slower.write(
        "conftest.py",
        "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish(session):\n"
        "    session.testsfailed = session.exitstatus = 0\n",
    )
    assert slower.run("--gpuperf", *workers, subprocess=bool(workers)).ret == 1


def test_a_hook_at_the_end_of_a_green_run_is_let_be(recorded):
    recorded.write("conftest.py", f"import pytest\n{ENDS['a wrapper'][0]}")
    assert recorded.run("--gpuperf").ret == 0
