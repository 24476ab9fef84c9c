"""Kernels that an autotuner chose the configuration of: what was chosen is on record, and another choice has its word.

``add`` is what Triton 3.6 made of BLOCK=1024 and four warps, ``add-narrow`` of BLOCK=256 and two: fewer instructions,
and four times as many blocks.  On the simulated GPU each block costs ``block_ns``, which makes either the faster one.
"""

from __future__ import annotations

import pytest
from suite_under_test import RECORD, SIMULATED, Suite
from test_ready_made_kernels import ADDING, SAMPLES, baseline

WIDE_CONFIG, NARROW_CONFIG = "BLOCK=1024, num_warps=4, num_stages=3", "BLOCK=256, num_warps=2, num_stages=2"
WIDE, NARROW = f'"add-3.6.0", {WIDE_CONFIG!r}', f'"add-narrow-3.6.0", {NARROW_CONFIG!r}'
TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from triton_samples import compiled


def test_add(cuda_kernel, gpu, gpuperf):
    stem, chosen = {WIDE}
    config = {{name: int(value) for name, value in (one.split("=") for one in chosen.split(", "))}}
    kernel = cuda_kernel.from_triton(compiled(stem), config=config)
    x, y = gpu.random(4096, seed=1), gpu.random(4096, seed=2)
    out = gpu.empty_like(x)
    launch = kernel.launch(4096 // config["BLOCK"], (x, y, out, 4096, config["BLOCK"]))
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x + y))
"""
CHANGED = f"the configuration was {WIDE_CONFIG} and is {NARROW_CONFIG}"
SAME, FASTER, SLOWER = 120, 0, 300
"""Nanoseconds per block with which the narrow kernel takes as long as the wide one, less and more."""


def conftest(block_ns: int) -> str:
    simulated = SIMULATED.replace('"work": work', '"add": add, "work": work')
    return ADDING + simulated.replace("SimulatedGpu(", f"SimulatedGpu(block_ns={block_ns}, ")


@pytest.fixture
def tuned(gpu_suite: Suite) -> Suite:
    """On a simulated GPU, with a baseline of the wide configuration."""
    gpu_suite.write("test_suite.py", TEST)
    at(gpu_suite, SAME)
    gpu_suite.run(*RECORD).assert_outcomes(passed=1)
    return gpu_suite


def at(suite: Suite, block_ns: int) -> None:
    suite.write("conftest.py", conftest(block_ns))


def test_the_choice_is_on_record_and_the_same_one_is_unchanged(tuned: Suite) -> None:
    assert [one["config"] for one in baseline(tuned, "sm_90").values()] == [WIDE_CONFIG]
    assert [one["identity"]["config"] for one in baseline(tuned, "simulated-gpu").values()] == [WIDE_CONFIG]
    result = tuned.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* UNCHANGED"])
    assert "NOT-COMPARABLE" not in result.stdout.str()


def test_another_choice_warns_with_both_and_is_paired_as_each_is_launched(tuned: Suite) -> None:
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* SAME"])
    result.stdout.re_match_lines(
        [
            r".*add  NOT-COMPARABLE  on sm_90 \(static\)",
            r" +also: block 128x1x1 -> 64x1x1, registers 30 -> 20",
            rf" +{CHANGED}: figures of two configurations are no measure for each other\.",
        ]
    )
    assert "WORSE" not in result.stdout.str()


def test_another_choice_fails_where_open_verdicts_do(tuned: Suite) -> None:
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.re_match_lines([r"E? *add  NOT-COMPARABLE  on sm_90 \(static\)"])


def test_it_fails_under_ci_without_a_gpu_and_can_be_let_pass(tuned: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned.edit("test_suite.py", WIDE, NARROW)
    tuned.write("conftest.py", "")
    assert tuned.run("--gpuperf").ret == pytest.ExitCode.OK
    monkeypatch.setenv("CI", "true")
    result = tuned.run("--gpuperf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert CHANGED in result.stdout.str()
    assert tuned.run("--gpuperf", "--gpuperf-open=warn").ret == pytest.ExitCode.OK


def test_an_update_accepts_it(tuned: Suite) -> None:
    tuned.edit("test_suite.py", WIDE, NARROW)
    tuned.run("--update-baselines=new").assert_outcomes(passed=1)
    assert [one["config"] for one in baseline(tuned, "sm_90").values()] == [WIDE_CONFIG]
    tuned.run(*RECORD).assert_outcomes(passed=1)
    assert [one["config"] for one in baseline(tuned, "sm_90").values()] == [NARROW_CONFIG]
    result = tuned.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(passed=1)
    assert "NOT-COMPARABLE" not in result.stdout.str()


def test_a_slower_choice_is_slower_and_says_what_was_chosen(tuned: Suite) -> None:
    at(tuned, SLOWER)
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"add  SLOWER  on simulated-gpu \(time\) ",
            r" .* paired, \d+\+\d+ blocks",
            rf" +proven .*; {CHANGED}; the machine code changed; the launch changed from grid=\(4, 1, 1\)",
            r".*add  NOT-COMPARABLE  on sm_90 \(static\)",
        ]
    )


def test_a_slower_choice_that_is_recorded_is_the_baseline(tuned: Suite) -> None:
    at(tuned, SLOWER)
    tuned.edit("test_suite.py", WIDE, NARROW)
    assert "accept an intended change: pytest --update-baselines" in tuned.run("--gpuperf").stdout.str()
    tuned.run(*RECORD).assert_outcomes(passed=1)
    tuned.run("--gpuperf").assert_outcomes(passed=1)


def test_a_faster_choice_passes_and_its_configuration_is_still_to_be_accepted(tuned: Suite) -> None:
    at(tuned, FASTER)
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* FASTER"])
    assert f"{CHANGED}:" in result.stdout.str()


def test_equal_machine_code_is_unchanged_whatever_was_chosen(tuned: Suite) -> None:
    tuned.edit("test_suite.py", ", num_stages=3'", "'")
    result = tuned.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* UNCHANGED"])


def test_the_configuration_of_another_call_fails_the_test_that_gives_it(tuned: Suite) -> None:
    tuned.edit("test_suite.py", WIDE, f'"add-3.6.0", {NARROW_CONFIG!r}')
    result = tuned.run()
    result.assert_outcomes(failed=1)
    assert "config has BLOCK=256, and add was compiled with 1024" in result.stdout.str()
