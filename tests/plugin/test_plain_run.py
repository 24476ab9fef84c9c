"""Plain ``pytest``: every workload runs once and is checked; nothing is timed, gated or imported in vain."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


def test_workloads_run_and_are_checked_but_not_timed(gpu_suite):
    result = gpu_suite.run("-v")
    result.assert_outcomes(passed=3)
    assert "gpuperf" not in result.stdout.lines[-1]
    assert not (gpu_suite.path / "baselines").exists()


def watch(suite, body):
    """Let the simulated GPU have ``body`` for its class."""
    suite.edit("conftest.py", "def work(", f"class Watched(SimulatedGpu):\n{body}\ndef work(")
    suite.edit("conftest.py", "return SimulatedGpu(", "return Watched(")


@pytest.mark.parametrize("flags", [(), ("--gpuperf",)], ids=["plain", "gated"])
def test_each_test_starts_with_the_memory_that_others_left_given_back(gpu_suite, flags):
    watch(
        gpu_suite,
        "    def release_unused(self):\n        with open('released', 'a') as file:\n            file.write('x')\n",
    )
    gpu_suite.run(*flags).assert_outcomes(passed=3)
    assert (gpu_suite.path / "released").read_text() == 3 * "x"


@pytest.mark.parametrize("flags", [(), ("--gpuperf",)], ids=["plain", "gated"])
def test_workloads_run_and_are_timed_on_the_gpus_own_stream(gpu_suite, flags):
    watch(
        gpu_suite,
        "    inside = False\n"
        "    @__import__('contextlib').contextmanager\n"
        "    def current(self):\n"
        "        self.inside = True\n"
        "        yield\n"
        "        self.inside = False\n\n"
        "    def noise(self):\n"
        "        assert self.inside\n"
        "        return super().noise()\n",
    )
    gpu_suite.edit("test_suite.py", "check=lambda:", "check=lambda: gpu._device.inside and")
    gpu_suite.edit(
        "test_suite.py", "gpu.assert_equal(b, a))\n    assert", "gpu.assert_equal(b, a) is None)\n    assert"
    )
    gpu_suite.run(*flags).assert_outcomes(passed=3)


def test_a_wrong_result_fails(gpu_suite):
    gpu_suite.edit("conftest.py", "b[:] = a", "b[:] = a + 1")
    result = gpu_suite.run()
    result.assert_outcomes(failed=3)


def test_a_check_that_returns_false_fails(gpu_suite):
    gpu_suite.edit(
        "test_suite.py", "check=lambda: gpu.assert_equal(b, a))\n    assert", "check=lambda: False)\n    assert"
    )
    result = gpu_suite.run("-k", "work")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*the check of its result returned False*"])


def failed_by_its_check(gpu_suite, answer, needs):
    """A run of one test whose check gives this answer, by a line that the test file needs."""
    gpu_suite.edit(
        "test_suite.py", "check=lambda: gpu.assert_equal(b, a))\n    assert", f"check=lambda: {answer})\n    assert"
    )
    gpu_suite.edit("test_suite.py", "import pytest", f"import pytest\n{needs}")
    result = gpu_suite.run("-k", "1024")
    result.assert_outcomes(failed=1)
    return result


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("np.allclose(b, a + 1)", "False"),
        ("np.bool_(False)", "False"),
        ("np.array(False)", "False"),
        ("b == a + 1", "an array that is not true everywhere"),
        ("(True, False)", "False"),
        ("[np.allclose(b, a), np.allclose(b, a + 1)]", "False"),
        ("{'b': b == a + 1}", "an array that is not true everywhere"),
    ],
)
def test_a_check_that_says_no_as_an_array_library_does_fails(gpu_suite, answer, said):
    result = failed_by_its_check(gpu_suite, answer, "import numpy as np")
    result.stdout.fnmatch_lines([f"*the check of its result returned {said}*"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("float(abs(b - a - 1).max())", "1.0, of type float"),
        ("(False == True) + 0", "0, of type int"),
        ("'they differ'", "'they differ', of type str"),
        ("AssertionError('they differ')", "AssertionError('they differ'), of type AssertionError"),
        ("b - a", "array(*), of type ndarray"),
        ("(gpu.assert_equal(b, 2 * a) for _ in range(1))", "*, of type generator"),
        ("(gpu.assert_equal, b, 2 * a)", "*, of type method"),
    ],
)
def test_a_check_that_says_neither_yes_nor_no_is_refused(gpu_suite, answer, said):
    result = failed_by_its_check(gpu_suite, answer, "")
    result.stdout.fnmatch_lines(
        [f"*returned {said}, which says neither yes nor no, or did not run: compare in the check, which returns True *"]
    )


@pytest.mark.parametrize(
    "answer",
    [
        "None",
        "True",
        "np.array(True)",
        "b == a",
        "(gpu.assert_equal(b, a),)",
        "[True, np.allclose(b, a)]",
        "{'b': b == a}",
    ],
)
def test_a_check_that_does_not_say_no_passes(gpu_suite, answer):
    gpu_suite.edit(
        "test_suite.py", "check=lambda: gpu.assert_equal(b, a))\n    assert", f"check=lambda: {answer})\n    assert"
    )
    gpu_suite.edit("test_suite.py", "import pytest", "import numpy as np\nimport pytest")
    gpu_suite.run("-k", "1024").assert_outcomes(passed=1)


def test_a_wrong_result_fails_before_anything_is_timed(gpu_suite):
    gpu_suite.edit("conftest.py", "b[:] = a", "b[:] = a + 1")
    result = gpu_suite.run("--gpuperf", "--update-baselines")
    result.assert_outcomes(failed=3)
    assert "against baseline" not in result.stdout.str()
    assert not list((gpu_suite.path / "baselines").rglob("*.json*"))


def test_without_a_gpu_tests_are_static_only(suite):
    result = suite.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*3 static only*"])


HEAVY = {"cupy", "numpy", "scipy", "cuda", "msgspec", "pynvml", "rich"}


@pytest.fixture
def bytecode(shared_folder, monkeypatch):
    """As installed: what a run imports was compiled by an earlier one."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(shared_folder / "bytecode"))


def _import_times(path, *arguments):
    """Microseconds of every module imported by a pytest run, by name."""
    command = [sys.executable, "-X", "importtime", "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    run = subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)
    times = {}
    for line in run.stderr.splitlines():
        if line.startswith("import time:") and "|" in line and "self" not in line:
            own, _, name = line.removeprefix("import time:").split("|")
            times[name.strip()] = int(own)
    return times


def test_a_plain_run_imports_nothing_heavy_for_the_plugin(pytester, bytecode):
    pytester.makepyfile("def test_nothing(): pass")
    times = _import_times(pytester.path)
    assert "pytest_gpuperf.options" in times
    assert not {name.partition(".")[0] for name in times} & HEAVY


def test_a_static_run_imports_no_statistics(suite, bytecode):
    """They take as long as the gate itself."""
    times = _import_times(suite.path, "--gpuperf", "--gpuperf-arch=sm_90", "-s")
    assert "pytest_gpuperf.explain.comparison" in times
    assert "scipy" not in times


MOST_MODULES, MOST_CHARACTERS = 22, 72_000
"""Of source that a plain run imports: what takes less than ten milliseconds on two idle cores."""


def test_the_plugin_costs_a_plain_run_less_than_ten_milliseconds(pytester, bytecode):
    """Or imports no more than what took that: where other work slows the machine, times say nothing of the plugin."""
    pytester.makepyfile("def test_nothing(): pass")
    own = []
    times = _import_times(pytester.path)
    while len(own) < 5:
        times = _import_times(pytester.path)
        own.append(sum(us for name, us in times.items() if name.startswith("pytest_gpuperf")) / 1000)
    files = [importlib.util.find_spec(name).origin for name in times if name.startswith("pytest_gpuperf")]
    characters = sum(len(Path(file).read_text(encoding="utf-8")) for file in files)
    assert min(own) < 10 or (len(files) <= MOST_MODULES and characters <= MOST_CHARACTERS), (own, files, characters)
    assert len(files) > 10
