"""``inputs=`` and ``outputs=``: honest workloads pass with other inputs in every run, and what is given is checked."""

from __future__ import annotations

import re

import pytest
from suite_under_test import Suite

LAUNCH = "inputs=fresh(gpu), outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5)"


def measured(suite: Suite, given: str, *flags: str) -> pytest.RunResult:
    """A run of the launch with these arguments."""
    suite.edit("test_untrusted.py", LAUNCH, given)
    return suite.run("--gpuperf", "-k", "launch", *flags)


def test_the_honest_suite_stays_green_whatever_is_timed(untrusted: Suite) -> None:
    for flags in ((), ("--gpuperf-all",), ("--gpuperf-cache=warm",)):
        untrusted.run("--gpuperf", *flags).assert_outcomes(passed=2)


def test_a_plain_run_checks_on_inputs_of_its_own(untrusted: Suite) -> None:
    untrusted.run().assert_outcomes(passed=2)
    untrusted.edit("untrusted.py", "b[:] = 2 * a", "b[:] = 3 * a")
    result = untrusted.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r".*inputs\(\d+\); --gpuperf-seed=\d+ repeats its inputs"])


def test_without_a_gpu_it_is_static_only(untrusted: Suite) -> None:
    (untrusted.path / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    result = untrusted.run("--gpuperf")
    result.assert_outcomes(failed=0)
    result.stdout.fnmatch_lines(["*static only*"])


def test_a_slower_kernel_is_slower_beside_its_baseline_on_the_same_inputs(untrusted: Suite) -> None:
    untrusted.edit("work.cu", "x = x * 1.5f + a[i]", "x = x * 1.5f + a[i] * x")
    result = untrusted.run("--gpuperf", "-k", "launch")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SLOWER*"])
    assert "WrongResult" not in result.stdout.str()


def test_baseline_and_candidate_see_the_same_seeds_and_neither_sees_one_twice(untrusted: Suite) -> None:
    untrusted.write("untrusted.py", "seen = []\ndef work(a, b, n):\n    b[:] = 2 * a\n    seen.append(bytes(a[:4]))\n")
    untrusted.edit("work.cu", "x * 1.5f", "x * 1.25f")
    text = (untrusted.path / "test_untrusted.py").read_text().split("def test_callable")[0]
    counts = "    counts = [untrusted.seen.count(one) for one in set(untrusted.seen)]\n"
    said = "    print('most', max(counts), 'twice', counts.count(2))\n"
    untrusted.write("test_untrusted.py", f"{text}{counts}{said}")
    out = untrusted.run("--gpuperf", "-s").stdout.str()
    found = re.search(r"most (\d+) twice (\d+)", out)
    assert found, out
    assert int(found[1]) == 2
    assert int(found[2]) > 200


def test_the_same_seed_makes_the_same_inputs(untrusted: Suite) -> None:
    untrusted.edit("untrusted.py", "b[:] = 2 * a", "b[:] = 3 * a")
    said = [
        next(line for line in untrusted.run("-k", "launch", f"--gpuperf-seed={seed}").outlines if "inputs(" in line)
        for seed in (7, 7, 8)
    ]
    assert said[0] == said[1] != said[2]
    assert "--gpuperf-seed=7" in said[0]


def test_kernels_that_work_in_place_have_their_input_in_both(untrusted: Suite) -> None:
    untrusted.edit("untrusted.py", "b[:] = 2 * a", "a *= 2")
    given = (
        "inputs=lambda seed: {0: gpu.random(SIZE, seed=seed)}, outputs=(a,), "
        "check=lambda result, inputs: gpu.assert_allclose(result, 2 * inputs[0], rtol=1e-5)"
    )
    measured(untrusted, given).assert_outcomes(passed=1)


def test_outputs_alone_are_poisoned_and_the_inputs_stay(untrusted: Suite) -> None:
    untrusted.edit("test_untrusted.py", "a, b = gpu.empty(SIZE)", "a, b = gpu.random(SIZE, seed=3)")
    given = "outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5)"
    measured(untrusted, given).assert_outcomes(passed=1)
    untrusted.edit("untrusted.py", "b[:] = 2 * a", "b[: n // 2] = 2 * a[: n // 2]")
    untrusted.run("--gpuperf", "-k", "launch").assert_outcomes(failed=1)


def test_reset_comes_behind_the_poison(untrusted: Suite) -> None:
    """For what adds to its output."""
    untrusted.edit("untrusted.py", "b[:] = 2 * a", "b += 2 * a")
    measured(untrusted, f"{LAUNCH}, reset=lambda: b.fill(0)").assert_outcomes(passed=1)


def test_an_update_records_nothing_of_what_is_wrong_when_it_is_timed(untrusted: Suite) -> None:
    untrusted.edit("untrusted.py", "def work(a, b, n):\n", "runs = []\ndef work(a, b, n):\n    runs.append(1)\n")
    untrusted.edit("untrusted.py", "    b[:] = 2 * a", "    b[:] = 2 * a * (len(runs) < 3)")
    untrusted.edit("work.cu", "x * 1.5f", "x * 1.25f")
    before = untrusted.baseline_files()
    result = untrusted.run("--update-baselines", "--gpuperf-rounds=2", "--gpuperf-processes=1", "-k", "launch")
    result.assert_outcomes(failed=1)
    assert untrusted.baseline_files() == before


BAD = {
    "inputs=3, check=lambda: True": "inputs=3 is not valid: it takes a function",
    "outputs=3, check=lambda: True": "outputs=3 is not valid: it takes the arrays that the workload writes",
    "inputs=fresh(gpu)": "inputs= and outputs= are there to be checked: give check=",
    "inputs=fresh(gpu), outputs=(gpu.empty(3),), check=lambda: True": "number 0 of outputs= is no argument of the",
    "inputs=lambda seed: gpu.empty(SIZE), outputs=(b,), check=lambda: True": "gives the same for the seeds",
    "inputs=lambda seed: gpu._device.arrays.array(__import__('numpy').random.rand(SIZE).astype('f4')), outputs=(b,), "
    "check=lambda: True": "gave two results for seed",
    "inputs=lambda seed: gpu.random(SIZE, 'float64', seed=seed), outputs=(b,), check=lambda: True":
        "gives numpy float64[[]1024] for 0, which is numpy float32[[]1024]: give the same library, type and shape",
    "inputs=lambda seed: gpu.random(9, seed=seed), outputs=(b,), check=lambda: True": "gives numpy float32[[]9] for 0",
    "inputs=lambda seed: [], outputs=(b,), check=lambda: True": "gives nothing, and the workload reads 0",
    "inputs=lambda seed: {'c': 3}, outputs=(b,), check=lambda: True": "gives 'c', which is no array of it: of *0, 1, 2",
    "inputs=lambda seed: {0: seed}, outputs=(b,), check=lambda: True": "gives int for 0: it takes CuPy arrays",
    "inputs=fresh(gpu), outputs=(b,), check=lambda b: True": "check takes b: with inputs= or outputs= it may take",
    "precision=0.1": "precision= is for workloads with inputs= or outputs=: give one of them",
    f"{LAUNCH}, precision=2": "precision=2 is not valid: it takes a fraction up to 0.5",
}  # fmt: skip


def test_a_check_that_cannot_know_the_inputs_of_a_callable_is_refused(untrusted: Suite) -> None:
    untrusted.edit("test_untrusted.py", "check=lambda result, inputs:", "check=lambda result, inputs=(gpu.empty(9),):")
    result = untrusted.run("--gpuperf", "-k", "callable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*BadArgument: gpuperf: check asks for neither inputs nor seed*"])


@pytest.mark.parametrize(("given", "said"), BAD.items(), ids=range(len(BAD)))
def test_what_cannot_be_is_refused_with_the_remedy(untrusted: Suite, given: str, said: str) -> None:
    result = measured(untrusted, given)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*BadArgument: *{said}*"])


CHECKS = {
    "lambda: True": "takes an output for right in which nothing was written",
    "lambda: gpu.assert_allclose(b[0:0], 2 * a[0:0])": "takes an output for right in which nothing was written",
    "lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-2)": "takes a result for right that is off by 0.0039 of itself",
    "lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-3), precision=1e-4": "*off by 0.0001 of itself",
}


@pytest.mark.parametrize(("check", "said"), CHECKS.items(), ids=range(len(CHECKS)))
def test_a_check_that_takes_what_is_wrong_is_refused(untrusted: Suite, check: str, said: str) -> None:
    result = measured(untrusted, f"inputs=fresh(gpu), outputs=(b,), check={check}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*WrongResult: work: its check {said}*"])


def test_a_wide_check_is_taken_where_the_test_says_how_wide(untrusted: Suite) -> None:
    given = "inputs=fresh(gpu), outputs=(b,), precision=0.05, check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-2)"
    measured(untrusted, given).assert_outcomes(passed=1)


GAINS_NOTHING = {
    "kept by the input's content": """
    key = x.tobytes()
    hits.append(key in kept)
    out = kept.setdefault(key, 2 * x)
""",
    "kept in files": """
    file = pathlib.Path(hashlib.sha256(x).hexdigest())
    hits.append(file.exists())
    file.write_bytes((2 * x).tobytes())
    out = np.frombuffer(file.read_bytes(), "f4").copy()
""",
}


@pytest.mark.parametrize("body", GAINS_NOTHING.values(), ids=GAINS_NOTHING.keys())
def test_a_result_that_is_kept_from_run_to_run_is_never_wanted_again(untrusted: Suite, body: str) -> None:
    """These compute in every run, and are timed for it."""
    head = "import hashlib, pathlib\nimport numpy as np\nkept, hits = {}, []\n"
    untrusted.write("untrusted.py", f"{head}def solve(x, spend):\n    spend(20_000){body}    return out\n"
                                    "def work(a, b, n):\n    pass\n")  # fmt: skip
    text = (untrusted.path / "test_untrusted.py").read_text()
    untrusted.write("test_untrusted.py", f"{text}    assert len(untrusted.hits) > 100 and not any(untrusted.hits)\n")
    untrusted.run("--gpuperf", "-k", "callable").assert_outcomes(passed=1)


def test_no_output_holds_what_an_earlier_run_wrote(untrusted: Suite) -> None:
    """So a kernel that runs only where its output is poisoned runs always."""
    untrusted.edit("untrusted.py", "    b[:] = 2 * a", "    skips.append(not np.isnan(b).any())\n    b[:] = 2 * a")
    untrusted.edit("untrusted.py", "def work", "skips = []\ndef work")
    text = (untrusted.path / "test_untrusted.py").read_text().split("def test_callable")[0]
    untrusted.write("test_untrusted.py", f"{text}    assert len(untrusted.skips) > 100 and not any(untrusted.skips)\n")
    untrusted.run("--gpuperf").assert_outcomes(passed=1)


@pytest.mark.parametrize(("ns", "failed"), [(20_000, 0), (0.1, 1)])
def test_a_time_that_no_gpu_could_have_is_refused_without_being_read(untrusted: Suite, ns: float, failed: int) -> None:
    untrusted.edit("conftest.py", "return SimulatedGpu(", "gpu = SimulatedGpu(")
    limits = "max_sm_clock_mhz=1980, max_memory_clock_mhz=3201, memory_bus_bits=6144"
    text = (untrusted.path / "conftest.py").read_text().rstrip()
    facts = f"    gpu.facts = __import__('msgspec').structs.replace(gpu.facts, {limits})\n    return gpu\n"
    untrusted.write("conftest.py", f"{text}\n{facts}")
    untrusted.edit("test_untrusted.py", 'name="solve",', 'name="solve", bytes=8 * SIZE,')
    untrusted.edit("untrusted.py", "spend(20_000)", f"spend({ns})")
    result = untrusted.run("--gpuperf", "-k", "callable")
    result.assert_outcomes(failed=failed, passed=1 - failed)
    if failed:
        result.stdout.fnmatch_lines(["*ImplausibleFigure: solve: IMPLAUSIBLE: bytes=8192*"])
