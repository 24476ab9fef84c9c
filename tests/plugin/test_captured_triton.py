"""Kernels that a call of Triton would launch, without a GPU: a stand-in for Triton asks its driver as it does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from git_samples import commit
from suite_under_test import Suite

SAMPLES = Path(__file__).parents[1] / "unit" / "device"
TRITON = f"""
import sys
from types import SimpleNamespace as Of

sys.path.insert(0, {str(SAMPLES)!r})
from handed_samples import NARROW, WIDE, compiled

CHOSEN = WIDE


class Config:
    def __init__(self):
        self._active = None


class TritonError(Exception):
    pass


errors = Of(TritonError=TritonError)
runtime, backends = Of(driver=Config()), Of(compiler=Of(GPUTarget=lambda *of: of))
sys.modules["triton"] = sys.modules[__name__]


def launch(*arrays, stem=None, tuned=False):
    driver, kernel = runtime.driver._active, compiled(stem or CHOSEN)
    assert driver.get_current_target()[:2] == ("cuda", 90) and all(one.data_ptr() == 0 for one in arrays)
    device, name = driver.get_current_device(), kernel.metadata.name if not tuned else "tuned"
    _, function, *_ = driver.utils.load_binary(name, bytes(kernel.asm["cubin"]), 0, device)
    stream, launcher = driver.get_current_stream(device), driver.launcher_cls(None, kernel.metadata)
    run = lambda: launcher(8, 1, 1, stream, function, *arrays)
    if tuned:
        driver.get_benchmarker()(run, quantiles=(0.5,))
    run()
"""
TEST = """
import triton_stand_in as triton


def test_add(gpu, gpuperf):
    x, out = gpu.empty(1024), gpu.empty(1024)

    def add():
        triton.launch(x, out, tuned=True)
        triton.launch(x, out)
        assert out.sum() > 0  # needs data

    gpuperf(add)
"""
FLAGS = ("--gpuperf-arch=sm_90",)


def test_kernels_are_recorded_and_gated_without_a_gpu(suite: Suite) -> None:
    for name in ("work.cu", "other.cu"):
        (suite.path / name).unlink()
    suite.write("triton_stand_in.py", TRITON)
    suite.write("test_suite.py", TEST)
    suite.run("--update-baselines", *FLAGS)
    (line,) = [one for one in (suite.path / "baselines/sm_90/test_suite.jsonl").read_text().splitlines()[1:] if one]
    found = json.loads(line)
    assert (found["workload"], found["record"]["block"]) == ("add: add", [128, 1, 1])
    result = suite.run("--gpuperf", "--gpuperf-open=fail", *FLAGS)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*add: add*UNCHANGED*", "timing needs a GPU: 1 workload was * evidence only (*"])
    suite.edit("triton_stand_in.py", "CHOSEN = WIDE", "CHOSEN = 'add-one-warp-3.6.0'")
    result = suite.run("--gpuperf", *FLAGS)
    assert result.ret == 1
    result.stdout.re_match_lines([r"add: add  WORSE  on sm_90 \(static\)", r" +occupancy 100 -> 31\.2 %"])
    suite.edit(
        "triton_stand_in.py", "    driver, kernel =", "    raise TritonError('no such name')\n    driver, kernel ="
    )
    result = suite.run("--gpuperf", *FLAGS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *TritonError: no such name"])


def test_kernels_of_two_environments_are_compared_without_a_gpu(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("triton_stand_in.py", TRITON.replace("= WIDE", "= __import__('os').environ.get('NEW', WIDE)"))
    suite.write("test_suite.py", TEST)
    commit(suite.path)
    suite.write("env/bin/python", f'#!/bin/sh\nunset NEW\nexec {sys.executable} "$@"\n')
    (suite.path / "env/bin/python").chmod(0o755)
    monkeypatch.setenv("NEW", "add-one-warp-3.6.0")
    result = suite.run("--gpuperf", "--gpuperf-against-env=env", *FLAGS)
    assert result.ret == 1, result.stdout.str()
    result.stdout.re_match_lines([r"add: add  WORSE  on sm_90 \(static\)", r" +occupancy 100 -> 31\.2 %"])
