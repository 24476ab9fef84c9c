"""Plain ``pytest``: every workload runs once and is checked; nothing is timed, gated or imported in vain."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from suite_under_test import MEASURING, assert_refused, run_bodies

WATCHED = """class Watched(SimulatedGpu):
    inside = False

    def release_unused(self):
        with open("released", "a") as file:
            file.write("x")

    @__import__("contextlib").contextmanager
    def current(self):
        self.inside = True
        yield
        self.inside = False

    def noise(self):
        assert self.inside
        return super().noise()

def work("""


@pytest.mark.parametrize("flags", [(), ("--gpuperf",)], ids=["plain", "gated"])
def test_each_test_has_the_gpus_own_stream_and_the_memory_that_others_left(gpu_suite, flags):
    """That is given back before a test; workloads run, are checked and timed on the stream."""
    gpu_suite.edit("conftest.py", "def work(", WATCHED)
    gpu_suite.edit("conftest.py", "return SimulatedGpu(", "return Watched(")
    gpu_suite.edit("test_suite.py", "check=lambda:", "check=lambda: gpu._device.inside and")
    gpu_suite.edit("test_suite.py", "equal(b, a))\n    assert", "equal(b, a) is None)\n    assert")
    gpu_suite.run(*flags).assert_outcomes(passed=3)
    assert (gpu_suite.path / "released").read_text() == 3 * "x"
    assert not (gpu_suite.path / "baselines").exists()


NO = {
    "False": "False", "np.allclose(a, a + 1)": "False", "np.bool_(False)": "False", "np.array(False)": "False",
    "a == a + 1": "an array that is not true everywhere", "(True, False)": "False",
    "[np.allclose(a, a), np.allclose(a, a + 1)]": "False", "{'b': a == a + 1}": "an array that is not true everywhere",
}  # fmt: skip
NEITHER = {
    "float(abs(a - a - 1).max())": "1.0, of type float", "(False == True) + 0": "0, of type int",
    "'they differ'": "'they differ', of type str", "a - a": ", of type ndarray",
    "AssertionError('they differ')": "AssertionError('they differ'), of type AssertionError",
    "(gpu.assert_equal(a, a) for _ in range(1))": ", of type generator", "(gpu.assert_equal, a, a)": ", of type method",
}  # fmt: skip
YES = (
    "None", "True", "np.array(True)", "a == a", "(gpu.assert_equal(a, a),)", "[True, np.allclose(a, a)]",
    "{'b': a == a}",
)  # fmt: skip
CHECKED = "gpuperf(launch, check=lambda: {})"


def test_a_check_fails_by_an_answer_that_is_no_or_none(gpu_suite):
    refused = {CHECKED.format(answer): f"the check of its result returned {said}" for answer, said in NO.items()}
    neither = "{}. To do: compare in the check, and return True or False"
    refused |= {CHECKED.format(answer): neither.format(said) for answer, said in NEITHER.items()}
    assert_refused(gpu_suite, refused, before=MEASURING)


def test_a_check_that_does_not_say_no_passes(gpu_suite):
    run_bodies(gpu_suite, map(CHECKED.format, YES), before=MEASURING).assert_outcomes(passed=len(YES))


def test_a_wrong_result_fails_before_anything_is_timed(gpu_suite):
    gpu_suite.edit("conftest.py", "b[:] = a", "b[:] = a + 1")
    gpu_suite.run().assert_outcomes(failed=3)
    result = gpu_suite.run("--gpuperf", "--update-baselines")
    result.assert_outcomes(failed=3)
    assert "against baseline" not in result.stdout.str()
    assert not list((gpu_suite.path / "baselines").rglob("*.json*"))


HEAVY = {"cupy", "cupti", "numpy", "scipy", "cuda", "msgspec", "pynvml", "rich"}


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


def test_static_run_imports_no_statistics(suite):
    """They take as long as the gate itself."""
    times = _import_times(suite.path, "--gpuperf", "--gpuperf-arch=sm_90", "-s")
    assert "pytest_gpuperf.explain" in times
    assert "scipy" not in times


MOST_MODULES, MOST_CHARACTERS = 22, 72_000
"""Of source that a plain run imports: what takes less than ten milliseconds on two idle cores."""


def test_plugin_costs_a_plain_run_less_than_ten_milliseconds(pytester):
    """It imports nothing heavy, and no more than what took that; where it is more, its times are measured."""
    pytester.makepyfile("def test_nothing(): pass")
    times = _import_times(pytester.path)
    assert not {name.partition(".")[0] for name in times} & HEAVY
    own = [name for name in times if name.startswith("pytest_gpuperf")]
    assert len(own) > 10
    characters = sum(len(Path(importlib.util.find_spec(name).origin).read_text("utf-8")) for name in own)
    if len(own) > MOST_MODULES or characters > MOST_CHARACTERS:
        runs = [_import_times(pytester.path) for _ in range(5)]
        assert min(sum(run[name] for name in own) for run in runs) < 10_000, (own, characters)
