"""``check=`` runs again after the timing; ``inputs=`` and ``outputs=``: other inputs in every run, poisoned outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_under_test import KERNEL, RECORD, SIMULATED, Suite, assert_refused, run_bodies, sections, with_baselines

ONCE = "{'work': lambda a, b, n, runs=[]: (runs.append(1), b.__setitem__(slice(None), a if len(runs) == 1 else 0))}"


def right_once(suite: Suite) -> None:
    suite.edit("conftest.py", '{"work": work,', f"{ONCE} | {{")


def test_slower_kernel_that_turns_wrong_is_wrong_and_asks_no_second_process(recorded: Suite) -> None:
    right_once(recorded)
    recorded.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    recorded.in_second_process("raise SystemExit('asked')")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r".*WrongResult: work was right on its first run and wrong after \d+ more, so none of its times counts: .*"]
    )
    result.stdout.fnmatch_lines(["*if it works in place or accumulates, pass reset=*"])
    assert "  SLOWER" not in result.stdout.str()
    recorded.run("-k", "1024").assert_outcomes(passed=1)  # a plain run checks once


ADDING = """
import pytest

@pytest.mark.parametrize("reset", [None, lambda b: b.fill(0), lambda b: None], ids=["none", "whole", "idle"])
def test_adding(cuda_kernel, gpu, gpuperf, reset):
    a, b = gpu.random(512, seed=2), gpu.zeros(512)
    launch = cuda_kernel("other.cu", "other").launch(grid=2, block=256, args=(a, b, 512))
    gpuperf(launch, check=lambda: gpu.assert_equal(b, a), reset=reset and (lambda: reset(b)))
"""


def test_what_adds_to_its_result_needs_a_reset_that_restores_it(gpu_suite: Suite) -> None:
    gpu_suite.edit("conftest.py", '"other": work', '"other": lambda a, b, n: b.__iadd__(a)')
    gpu_suite.write("test_suite.py", ADDING)
    found = sections(gpu_suite.run("--gpuperf"))
    assert found.keys() == {"adding[none]", "adding[idle]"}
    assert "which restores all that a run changes" in found["adding[idle]"]


def test_second_process_that_finds_the_result_wrong_confirms_nothing(recorded: Suite) -> None:
    """It is the only one in which the kernel turns wrong."""
    right_once(recorded)
    recorded.edit("conftest.py", "len(runs) == 1", "len(runs) == 1 or not sys.modules.get('second')")
    recorded.in_second_process("sys.modules['second'] = sys")
    recorded.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER *",
            "*not confirmed: in a second process: its test fails there: *was right on its first run and *",
        ]
    )


# --- inputs= and outputs= ------------------------------------------------------------------------

CONFTEST = "import solution\n" + SIMULATED.replace('{"work": work, "other": work}', '{"work": solution.work}')
TESTS = """
import solution

SIZE = 1024

def fresh(gpu):
    return lambda seed: gpu.random(SIZE, seed=seed)

def test_launch(cuda_kernel, gpu, gpuperf):
    a, b = gpu.empty(SIZE), gpu.empty(SIZE)
    launch = cuda_kernel("work.cu", "work").launch(grid=4, block=256, args=(a, b, SIZE))
    gpuperf(launch, inputs=fresh(gpu), outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5))

def test_callable(gpu, gpuperf):
    def spend(nanoseconds):
        gpu._device.elapsed_ns += nanoseconds

    gpuperf(lambda x: solution.solve(x, spend), name="solve", inputs=fresh(gpu),
            check=lambda result, inputs: gpu.assert_allclose(result, 2 * inputs[0], rtol=1e-5))
"""

SOLUTION = """
import numpy as np

def work(a, b, n):
    b[:] = 2 * a

def solve(x, spend):
    spend(20_000)
    return 2 * x
"""

FILES = {
    "work.cu": KERNEL.replace("STEPS", "100"), "test_inputs.py": TESTS, "solution.py": SOLUTION, "conftest.py": CONFTEST
}  # fmt: skip


@pytest.fixture
def with_inputs(suite: Suite, shared_folder: Path) -> Suite:
    """A launch and a callable with fresh inputs in every run, with their baselines."""
    return with_baselines(suite, shared_folder / "fresh_inputs", FILES, *RECORD)


LAUNCH = "inputs=fresh(gpu), outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5)"


def measured(suite: Suite, given: str, *flags: str) -> pytest.RunResult:
    """A run of the launch with these arguments."""
    suite.edit("test_inputs.py", LAUNCH, given)
    return suite.run("--gpuperf", "-k", "launch", *flags)


def test_plain_run_checks_and_names_the_seed_of_what_is_wrong(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "b[:] = 2 * a", "b[:] = 3 * a")
    said = []
    for _ in range(2):
        result = with_inputs.run("-k", "launch")
        result.assert_outcomes(failed=1)
        said += [line for line in result.outlines if "The inputs were inputs(" in line]
    assert len(set(said)) == 1 < len(said), "the same in every run"


def test_without_a_gpu_it_is_static_only(with_inputs: Suite) -> None:
    (with_inputs.path / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    result = with_inputs.run("--gpuperf")
    result.assert_outcomes(failed=0)
    result.stdout.fnmatch_lines(["*static only*"])


def test_slower_kernel_is_slower_beside_its_baseline(with_inputs: Suite) -> None:
    with_inputs.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    result = with_inputs.run("--gpuperf", "-k", "launch")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SLOWER*"])
    assert "WrongResult" not in result.stdout.str()


SEEING = """
seen, places = [], set()

def work(a, b, n):
    b[:] = 2 * a
    seen.append(bytes(a[:4]))

def solve(x, spend):
    places.add(x.ctypes.data)
    spend(20_000)
    x *= 2
    return x.copy()
"""


def test_no_run_sees_inputs_again_and_a_callable_has_them_whole_at_the_same_addresses(with_inputs: Suite) -> None:
    """Neither of the baseline's nor of the candidate's, timed or not; and a captured graph reads what is there."""
    with_inputs.write("solution.py", SEEING)
    with_inputs.edit("work.cu", "x * 1.5f", "x * 1.25f")
    launch, mark, work = (with_inputs.path / "test_inputs.py").read_text().partition("def test_callable")
    other = "    assert len(solution.seen) == len(set(solution.seen)) > 200\n\n"
    with_inputs.write("test_inputs.py", f"{launch.rstrip()}\n{other}{mark}{work}    assert len(solution.places) == 1\n")
    with_inputs.run("--gpuperf").assert_outcomes(passed=2)


def test_result_that_is_kept_from_an_earlier_run_is_wrong(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "def solve", "kept = []\ndef solve")
    with_inputs.edit("solution.py", "return 2 * x", "kept.append(2 * x)\n    return kept[0]")
    result = with_inputs.run("--gpuperf", "-k", "callable")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        r".*WrongResult: solve was right on its first run and wrong after \d+ more, so none of its times.*",
        r".*The inputs were inputs\(\d+\)",
        ".*find the state that the workload keeps between runs",
    ])  # fmt: skip


@pytest.mark.parametrize("when", ["runs", "len(runs) > 3"])
def test_an_output_that_nothing_writes_is_found(with_inputs: Suite, when: str) -> None:
    """In the first run, or after the timing."""
    with_inputs.edit(
        "solution.py", "    b[:] = 2 * a", f"    runs.append(1)\n    if not ({when}):\n        b[:] = 2 * a"
    )
    with_inputs.edit("solution.py", "def work", "runs = []\ndef work")
    with_inputs.edit("test_inputs.py", "a, b = gpu.empty(SIZE)", "a, b = gpu.random(SIZE, seed=3)")
    result = measured(with_inputs, "outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5)")
    result.assert_outcomes(failed=1)
    assert ("was right on its first run and wrong after" in result.stdout.str()) == (when != "runs")


ARRAYS = ("gpu.zeros(9, 'int32')", "gpu.zeros(9, 'float64')", "gpu.zeros(9, 'bool')", "gpu.zeros((8, 9))[:, ::2]",
          "gpu.zeros(())", "gpu.zeros(0)")  # fmt: skip
POISONED = """out, runs = {}, []
def write():
    runs.append(bool((np.isnan(out) | (out == -1) | (out == True)).all()))
    out[...] = 3
gpuperf(write, outputs=out, check=lambda result: result is out and (out == out.dtype.type(3)).all())
assert runs == [True]
"""


def test_outputs_of_any_kind_are_poisoned_before_a_checked_run(with_inputs: Suite) -> None:
    run_bodies(with_inputs, map(POISONED.format, ARRAYS)).assert_outcomes(passed=len(ARRAYS))


def test_kernels_that_work_in_place_have_their_input_in_the_check(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "b[:] = 2 * a", "a *= 2")
    given = (
        "inputs=lambda seed: gpu.random(SIZE, seed=seed), outputs=(b,), "
        "check=lambda inputs: gpu.assert_allclose(a, 2 * inputs[0], rtol=1e-5)"
    )
    measured(with_inputs, given).assert_outcomes(passed=1)


def test_reset_comes_behind_the_poison(with_inputs: Suite) -> None:
    """For what adds to its output."""
    with_inputs.edit("solution.py", "b[:] = 2 * a", "b += 2 * a")
    measured(with_inputs, f"{LAUNCH}, reset=lambda: b.fill(0)").assert_outcomes(passed=1)


BAD = {
    "inputs=3, check=lambda: True": "inputs=3 is not valid: it takes a function",
    "inputs=fresh(gpu)": "inputs= and outputs= need a check: pass check=",
    "inputs=fresh(gpu), outputs=(gpu.empty(3),), check=lambda: True": "number 0 of outputs= is no argument of the",
    "inputs=lambda seed: gpu.empty(SIZE), outputs=(b,), check=lambda: True": "gives equal arrays for two seeds",
    "inputs=lambda seed: gpu.random(SIZE, 'float64', seed=seed), outputs=(b,), check=lambda: True":
        "gives numpy float64[1024] for number 0, which is numpy float32[1024]: give the same library, type and shape",
    "inputs=lambda seed: [], outputs=(b,), check=lambda: True": "gives 0 arrays, and the workload reads 1",
    "inputs=lambda seed: seed, outputs=(b,), check=lambda: True": "gives int: it takes CuPy arrays and",
    "inputs=fresh(gpu), outputs=(b,), check=lambda b: True": "check takes b: it may take result with inputs=",
    "inputs=fresh(gpu), outputs=(b,), check=lambda: True)\ngpuperf(lambda x: x, name='call', inputs=fresh(gpu), "
    "check=lambda result, inputs=(a,): True": "BadArgument: gpuperf: check has no parameter inputs or seed",
    "outputs=(b,), check=lambda seed: True": "check takes seed: it may take result with inputs= or outputs",
}  # fmt: skip


BEFORE = """SIZE, fresh = 1024, lambda gpu: lambda seed: gpu.random(SIZE, seed=seed)
a, b = gpu.empty(SIZE), gpu.empty(SIZE)
launch = cuda_kernel("work.cu", "work").launch(grid=4, block=256, args=(a, b, SIZE))
"""


def test_arguments_that_do_not_fit_are_refused_with_the_remedy(with_inputs: Suite) -> None:
    assert_refused(with_inputs, {f"gpuperf(launch, {given})": said for given, said in BAD.items()}, before=BEFORE)
