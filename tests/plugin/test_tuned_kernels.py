"""Kernels of Triton, whose autotuner chose the configuration: that is on record, and another choice has its word.

``add`` is what Triton 3.6 made of BLOCK=1024 and four warps, ``add-narrow`` of BLOCK=256 and two: fewer instructions,
and four times as many blocks.  On the simulated GPU each block costs ``block_ns``, which makes either the faster one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_under_test import HERE, RECORD, SIMULATED, Suite, with_baselines
from test_ready_made_kernels import baseline

SAMPLES = HERE.parent / "unit" / "device"
WIDE_CONFIG, NARROW_CONFIG = "BLOCK=1024, num_warps=4, num_stages=3", "BLOCK=256, num_warps=2, num_stages=2"
WIDE, NARROW = f'"add-3.6.0", {WIDE_CONFIG!r}', f'"add-narrow-3.6.0", {NARROW_CONFIG!r}'
TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from handed_samples import compiled


def test_add(cuda_kernel, gpu, gpuperf):
    stem, chosen = {WIDE}
    config = {{name: int(value) for name, value in (one.split("=") for one in chosen.split(", "))}}
    kernel = cuda_kernel.from_triton(compiled(stem), config=config)
    x, y = gpu.random(4096, seed=1), gpu.random(4096, seed=2)
    out = gpu.empty_like(x)
    launch = kernel.launch(4096 // config["BLOCK"], (x, y, out, 4096, config["BLOCK"]))
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x + y))
"""
ADDING = """
def add(x, y, out, n, *scratch):
    assert [int(pointer) for pointer in scratch] == [0, 0]
    out[:] = x + y
"""
CHANGED = f"the configuration was {WIDE_CONFIG} and is {NARROW_CONFIG}"
SAME, SLOWER = 120, 300
"""Nanoseconds per block with which the narrow kernel takes as long as the wide one, and more."""
OPEN = ("--gpuperf", "--gpuperf-open=fail")


def conftest(block_ns: int) -> str:
    simulated = SIMULATED.replace('"work": work', '"add": add, "work": work')
    return ADDING + simulated.replace("SimulatedGpu(", f"SimulatedGpu(block_ns={block_ns}, ")


@pytest.fixture
def tuned(gpu_suite: Suite, shared_folder: Path) -> Suite:
    """On a simulated GPU, with a baseline of the wide configuration."""
    files = {"test_suite.py": TEST, "conftest.py": conftest(SAME)}
    return with_baselines(gpu_suite, shared_folder / "tuned", files, *RECORD)


def choices(suite: Suite) -> tuple[list[str], list[str]]:
    """On record, of the architecture and of the GPU."""
    static, timed = (baseline(suite, target).values() for target in ("sm_90", "simulated-gpu"))
    return [one["config"] for one in static], [one["identity"]["config"] for one in timed]


def test_choice_is_on_record_and_equal_machine_code_is_unchanged(tuned: Suite) -> None:
    """Whatever was chosen; the configuration of another call fails the test that gives it."""
    assert list(baseline(tuned, "sm_90")) == ["triton 3.6.0"]
    assert choices(tuned) == ([WIDE_CONFIG], [WIDE_CONFIG])
    for old, new in (("", ""), (", num_stages=3'", "'")):
        tuned.edit("test_suite.py", old, new)
        result = tuned.run(*OPEN)
        result.assert_outcomes(passed=1)
        result.stdout.re_match_lines([r"  add .* UNCHANGED"])
    tuned.write("test_suite.py", TEST.replace(WIDE, f'"add-3.6.0", {NARROW_CONFIG!r}'))
    result = tuned.run()
    result.assert_outcomes(failed=1)
    assert "config has BLOCK=256, but add was compiled with 1024" in result.stdout.str()


def test_another_choice_is_named_and_paired_as_each_is_launched(tuned: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails where open verdicts do: under CI, with a GPU and without."""
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* SAME"])
    result.stdout.re_match_lines([
        r".*add  NOT-COMPARABLE  on sm_90 \(static\)",
        r" +also: block 128x1x1 -> 64x1x1, registers 30 -> 20",
        rf" +{CHANGED}: figures of two configurations are not comparable\.",
    ])  # fmt: skip
    assert "WORSE" not in result.stdout.str()
    tuned.run(*OPEN).assert_outcomes(failed=1)
    tuned.write("conftest.py", "")
    assert tuned.run("--gpuperf").ret == pytest.ExitCode.OK
    monkeypatch.setenv("CI", "true")
    result = tuned.run("--gpuperf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert CHANGED in result.stdout.str()


def test_slower_choice_is_slower_until_it_is_recorded(tuned: Suite) -> None:
    tuned.write("conftest.py", conftest(SLOWER))
    tuned.edit("test_suite.py", WIDE, NARROW)
    result = tuned.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        r"add  SLOWER  on simulated-gpu \(time\) ",
        r" .* paired, \d+\+\d+ blocks",
        rf" +proven .*; {CHANGED}; the machine code changed; the launch changed from grid=\(4, 1, 1\)",
        r".*add  NOT-COMPARABLE  on sm_90 \(static\)",
    ])  # fmt: skip
    assert "accept an intended change: pytest --update-baselines" in result.stdout.str()
    tuned.run(*RECORD).assert_outcomes(passed=1)
    tuned.run("--gpuperf").assert_outcomes(passed=1)
