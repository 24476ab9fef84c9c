"""``inputs=`` and ``outputs=``: other inputs in every run, outputs that hold poison before a checked one."""

from __future__ import annotations

import pytest
from suite_under_test import Suite, assert_refused, run_bodies

LAUNCH = "inputs=fresh(gpu), outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5)"


def measured(suite: Suite, given: str, *flags: str) -> pytest.RunResult:
    """A run of the launch with these arguments."""
    suite.edit("test_inputs.py", LAUNCH, given)
    return suite.run("--gpuperf", "-k", "launch", *flags)


def append(suite: Suite, lines: str) -> None:
    """Let the launch alone be tested, and its test end with these lines."""
    text = (suite.path / "test_inputs.py").read_text().split("def test_callable")[0]
    suite.write("test_inputs.py", f"{text.rstrip()}\n{lines}")


def test_the_suite_is_green_whatever_is_timed(with_inputs: Suite) -> None:
    for flags in ((), ("--gpuperf-time=all",), ("--gpuperf-cache=warm",)):
        with_inputs.run("--gpuperf", *flags).assert_outcomes(passed=2)


def test_a_plain_run_checks_and_names_the_seed_of_what_is_wrong(with_inputs: Suite) -> None:
    with_inputs.run().assert_outcomes(passed=2)
    with_inputs.edit("solution.py", "b[:] = 2 * a", "b[:] = 3 * a")
    said = []
    for _ in range(2):
        result = with_inputs.run("-k", "launch")
        result.assert_outcomes(failed=1)
        said += [line for line in result.outlines if "its inputs were those of inputs(" in line]
    assert len(set(said)) == 1  # the same in every process


def test_without_a_gpu_it_is_static_only(with_inputs: Suite) -> None:
    (with_inputs.path / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    result = with_inputs.run("--gpuperf")
    result.assert_outcomes(failed=0)
    result.stdout.fnmatch_lines(["*static only*"])


def test_a_slower_kernel_is_slower_beside_its_baseline(with_inputs: Suite) -> None:
    with_inputs.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    result = with_inputs.run("--gpuperf", "-k", "launch")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SLOWER*"])
    assert "WrongResult" not in result.stdout.str()


def test_no_run_sees_inputs_again(with_inputs: Suite) -> None:
    """Neither of the baseline's nor of the candidate's, timed or not."""
    with_inputs.write("solution.py", "seen = []\ndef work(a, b, n):\n    b[:] = 2 * a\n    seen.append(bytes(a[:4]))\n")
    with_inputs.edit("work.cu", "x * 1.5f", "x * 1.25f")
    append(with_inputs, "    assert len(solution.seen) == len(set(solution.seen)) > 200\n")
    with_inputs.run("--gpuperf").assert_outcomes(passed=1)


def test_a_callable_has_its_inputs_at_the_same_addresses(with_inputs: Suite) -> None:
    """So that a captured graph reads them."""
    with_inputs.edit("solution.py", "    spend(20_000)", "    places.add(x.ctypes.data)\n    spend(20_000)")
    with_inputs.edit("solution.py", "def solve", "places = set()\ndef solve")
    text = (with_inputs.path / "test_inputs.py").read_text()
    with_inputs.write("test_inputs.py", f"{text}    assert len(solution.places) == 1\n")
    with_inputs.run("--gpuperf", "-k", "callable").assert_outcomes(passed=1)


def test_inputs_that_a_callable_changes_are_whole_again_in_its_check_and_in_its_next_run(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "    return 2 * x", "    x *= 2\n    return x.copy()")
    with_inputs.run("--gpuperf", "-k", "callable").assert_outcomes(passed=1)


def test_a_result_that_is_kept_from_an_earlier_run_is_wrong(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "def solve", "kept = []\ndef solve")
    with_inputs.edit("solution.py", "return 2 * x", "kept.append(2 * x)\n    return kept[0]")
    result = with_inputs.run("--gpuperf", "-k", "callable")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r".*WrongResult: solve was right on its first run and wrong after \d+ more, so none of its times.*",
            r".*its inputs were those of inputs\(\d+\)",
            ".*find out what the workload keeps from one run for the next",
        ]
    )


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


def test_an_update_records_nothing_of_what_is_wrong_after_its_timing(with_inputs: Suite) -> None:
    with_inputs.edit("solution.py", "def work(a, b, n):\n", "runs = []\ndef work(a, b, n):\n    runs.append(1)\n")
    with_inputs.edit("solution.py", "    b[:] = 2 * a", "    b[:] = 2 * a * (len(runs) < 3)")
    with_inputs.edit("work.cu", "x * 1.5f", "x * 1.25f")
    before = with_inputs.baseline_files()
    result = with_inputs.run("--update-baselines", "-k", "launch")
    result.assert_outcomes(failed=1)
    assert with_inputs.baseline_files() == before


BAD = {
    "inputs=3, check=lambda: True": "inputs=3 is not valid: it takes a function",
    "outputs=3, check=lambda: True": "outputs=3 is not valid: it takes the arrays that the workload writes",
    "inputs=fresh(gpu)": "inputs= and outputs= are there to be checked: give check=",
    "inputs=fresh(gpu), outputs=(gpu.empty(3),), check=lambda: True": "number 0 of outputs= is no argument of the",
    "inputs=lambda seed: gpu.empty(SIZE), outputs=(b,), check=lambda: True": "gives the same for two seeds",
    "inputs=lambda seed: gpu.random(SIZE, 'float64', seed=seed), outputs=(b,), check=lambda: True":
        "gives numpy float64[1024] for number 0, which is numpy float32[1024]: give the same library, type and shape",
    "inputs=lambda seed: gpu.random(9, seed=seed), outputs=(b,), check=lambda: True": "gives numpy float32[9] for",
    "inputs=lambda seed: [], outputs=(b,), check=lambda: True": "gives 0 arrays, and the workload reads 1",
    "inputs=lambda seed: seed, outputs=(b,), check=lambda: True": "gives int: it takes CuPy arrays and",
    "inputs=fresh(gpu), outputs=(b,), check=lambda b: True": "check takes b: it may take result with inputs=",
    "outputs=(b,), check=lambda seed: True": "check takes seed: it may take result with inputs= or outputs",
}  # fmt: skip


BEFORE = """SIZE, fresh = 1024, lambda gpu: lambda seed: gpu.random(SIZE, seed=seed)
a, b = gpu.empty(SIZE), gpu.empty(SIZE)
launch = cuda_kernel("work.cu", "work").launch(grid=4, block=256, args=(a, b, SIZE))
"""


def test_arguments_that_do_not_fit_are_refused_with_the_remedy(with_inputs: Suite) -> None:
    assert_refused(with_inputs, {f"gpuperf(launch, {given})": said for given, said in BAD.items()}, before=BEFORE)


def test_a_check_that_cannot_know_the_inputs_of_a_callable_is_refused(with_inputs: Suite) -> None:
    with_inputs.edit("test_inputs.py", "check=lambda result, inputs:", "check=lambda result, inputs=(gpu.empty(9),):")
    result = with_inputs.run("--gpuperf", "-k", "callable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*BadArgument: gpuperf: check asks for neither inputs nor seed*"])
