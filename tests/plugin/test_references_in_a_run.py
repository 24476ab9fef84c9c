"""``gpuperf.compare``: workloads of one test beside a reference, without a baseline."""

from __future__ import annotations

import pytest
from suite_under_test import Suite

COMPARED = """
import pytest

def test_pair(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1024, seed=1)
    arrays = {{name: gpu.empty_like(a) for name in ("ours", "theirs")}}
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    slower = cuda_kernel("work.cu", "work", options=["-DSTEPS={ours}"])
    theirs = kernel.launch(grid=8, block=256, args=(a, arrays["theirs"], 1024))
    ours = slower.launch(grid=8, block=256, args=({given}, arrays["ours"], 1024))
    found = gpuperf.compare({{"ours": {call}, "theirs": theirs}}, reference="theirs"{more})
    assert found.keys() == {{"ours"}}
    assert found["ours"].speedup == pytest.approx(1, rel=0.01) if {ours} == 100 else found["ours"].speedup < 0.98
"""


def compared(suite: Suite, *flags: str, ours: int = 100, call: str = "ours", given: str = "a", more: str = "") -> str:
    suite.write("test_suite.py", COMPARED.format(ours=ours, call=call, given=given, more=more))
    done = suite.run("--gpuperf", "-rA", *flags)
    return f"{done.ret}\n{done.stdout.str()}"


@pytest.mark.parametrize("call", ["ours", "lambda: ours()"])
def test_gate_is_red_beyond_its_limit(gpu_suite: Suite, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    monkeypatch.setenv("CI", "true")
    said = compared(gpu_suite, ours=110, call=call, more=", at_least=0.9")
    assert said.startswith("0"), said
    said = compared(gpu_suite, ours=110, call=call, more=", at_most=1.02")
    assert said.startswith("1"), said
    assert "ours  SLOWER  on simulated-gpu (time)  x1.0" in said
    assert "proven to be more than x1.03 of the time of theirs, in two processes" in said
    assert "--update-baselines, and commit" not in said
    said = compared(gpu_suite, ours=110, call=call, more=", at_most=1.02, min_delta_us=0.5")
    assert said.startswith("0"), said


def test_nothing_is_asked_of_a_comparison_without_a_limit(gpu_suite: Suite) -> None:
    said = compared(gpu_suite, ours=400)
    assert said.startswith("0"), said
    (judged,) = (one for one in gpu_suite.judgements() if one["kind"] == "time")
    assert (judged["verdict"], judged["reference"], judged["time"]["ratio"] > 2) == ("SAME", "theirs", True)


def test_no_update_records_it(gpu_suite: Suite) -> None:
    said = compared(gpu_suite, "--update-baselines=all", ours=105, more=", at_most=2")
    assert said.startswith("0"), said
    assert not (gpu_suite.path / "baselines/simulated-gpu").exists()


def test_other_results_than_the_reference_s_fail_before_a_time_is_taken(gpu_suite: Suite) -> None:
    outputs = ", outputs=arrays"
    assert compared(gpu_suite, more=outputs).startswith("0")
    said = compared(gpu_suite, given="gpu.random(1024, seed=2)", more=outputs)
    assert said.startswith("1"), said
    assert "result 0 is not that of theirs" in said
    said = compared(gpu_suite, more=", outputs=arrays | {'theirs': arrays['theirs'].view('float16')}")
    assert "result 0 is float32, and that of theirs is float16" in said
    assert "needs arrays of its own" in compared(gpu_suite, more=", outputs=dict.fromkeys(arrays, arrays['ours'])")
    assert "needs arrays of its own" in compared(gpu_suite, call="lambda: ours()", more=", outputs=True")


@pytest.mark.parametrize(("more", "problem"), [
    (", at_least=1, at_most=1", "pass at_least= or at_most=, not both"),
    (", at_most=0", "a number from 0.01 to 100"),
    (", outputs={'ours': a}", "outputs= has to name the arrays of each workload"),
    (", outputs=a", "BadArgument: gpuperf.compare: outputs= has to name the arrays of each workload"),
])  # fmt: skip
def test_what_it_does_not_take(gpu_suite: Suite, more: str, problem: str) -> None:
    assert problem in compared(gpu_suite, more=more)


def test_without_a_gpu_its_kernels_are_gated_by_their_machine_code(suite: Suite) -> None:
    asked = ("--gpuperf-arch=sm_90",)
    assert compared(suite, *asked).startswith("10")  # nothing was measured
    compared(suite, *asked, "--update-baselines")
    said = compared(suite, *asked, more=", at_least=1.1, outputs=arrays")
    assert said.startswith("0"), said
    assert "1 static only" in said
