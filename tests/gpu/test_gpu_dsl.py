"""Kernels of the CuTe DSL and of cuTile on a real GPU: launched without their library they do the same, and are paired.

Kernels of cuTile are launched from the cubins in ``tests/unit/device/dsl_compiled``, so they need no compiler but an
sm_90; those of the CuTe DSL are compiled here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

SAMPLES = Path(__file__).parents[1] / "unit" / "device"
RECORD = ("--update-baselines", "--gpuperf-disturbed")

CUTILE = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from types import SimpleNamespace

import numpy as np
from handed_samples import RecordedSignature, install_recorded_cutile

install_recorded_cutile()
STEPS = 40


def recorded(cuda_kernel, name):
    return cuda_kernel.from_cutile(SimpleNamespace(), RecordedSignature(f"cutile-{{name}}-1.7.0"), arch="sm_90")


def test_scale(cuda_kernel, gpu, gpuperf):
    n = 1 << 22
    x, out = gpu.random(n, seed=1), gpu.empty(n)
    launch = recorded(cuda_kernel, "scale").launch(n // 1024, (x, out, 2.5, 1024))
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x * gpu.full(n, 2.5)))


def test_softmax(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random((4096, 1024), seed=1), gpu.empty((4096, 1024))
    powers = np.exp(gpu.to_host(x).astype("float64"))
    launch = recorded(cuda_kernel, "softmax").launch(4096, (x, out, 1024))
    gpuperf(launch, check=lambda: gpu.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-4))


def test_matmul(cuda_kernel, gpu, gpuperf):
    a, b = (gpu.random((1024, 1024), "float16", seed=seed) for seed in (1, 2))
    c = gpu.empty((1024, 1024))
    product = gpu.to_host(a).astype("float64") @ gpu.to_host(b).astype("float64")
    launch = recorded(cuda_kernel, "matmul").launch((16, 16), (a, b, c, 64, 64, 32))
    gpuperf(launch, check=lambda: gpu.assert_allclose(c, product, rtol=1e-2))


def test_decay(cuda_kernel, gpu, gpuperf):
    n = 1 << 22
    x, out = gpu.random(n, seed=1), gpu.empty(n)
    expected = 1 + (gpu.to_host(x).astype("float64") - 1) * 0.999 ** (10 * STEPS)
    launch = recorded(cuda_kernel, f"decay{{STEPS}}").launch(n // 1024, (x, out, 1024, STEPS))
    gpuperf(launch, check=lambda: gpu.assert_allclose(out, expected, rtol=1e-4))
"""

CUTE = f"""
import sys
sys.path.insert(0, {str(SAMPLES / "dsl_compiled")!r})
import cuda.bindings.driver as cuda
from cutlass.cute.runtime import from_dlpack
from make_cute_fixtures import compiled_for

STEPS = 400


def launched(cuda_kernel, gpu, name, arrays, *constants):
    tensors = [from_dlpack(array, assumed_align=16).mark_layout_dynamic() for array in arrays]
    stream = cuda.CUstream(gpu.stream)
    function = compiled_for(name, tensors, stream, *constants)
    return cuda_kernel.from_cute(function).launch(lambda *_: function(*tensors, stream), arrays)


def test_add(cuda_kernel, gpu, gpuperf):
    n = (1 << 22) + 3
    x, y, out = gpu.random(n, seed=1), gpu.random(n, seed=2), gpu.empty(n)
    launch = launched(cuda_kernel, gpu, "add", (x, y, out))
    assert (launch.grid, launch.block) == (((n + 255) // 256, 1, 1), (256, 1, 1))
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x + y))


def test_rowsum(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random((8192, 1024), seed=1), gpu.empty(8192)
    launch = launched(cuda_kernel, gpu, "rowsum", (x, out))
    gpuperf(launch, check=lambda: gpu.assert_allclose(out, gpu.to_host(x).astype("float64").sum(axis=1), rtol=1e-4))


def test_transpose(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random((4096, 2048), seed=1), gpu.empty((2048, 4096))
    launch = launched(cuda_kernel, gpu, "transpose", (x, out))
    assert launch.dynamic_shared_bytes >= (31 * 33 + 32) * 4  # the last row needs no padding
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x.T))


def test_decay(cuda_kernel, gpu, gpuperf):
    n = 1 << 22
    x, out = gpu.random(n, seed=1), gpu.empty(n)
    expected = 1 + (gpu.to_host(x).astype("float64") - 1) * 0.999**STEPS
    launch = launched(cuda_kernel, gpu, "decay", (x, out), STEPS)
    gpuperf(launch, check=lambda: gpu.assert_allclose(out, expected, rtol=1e-4))
"""

ELSEWHERE = """
def test_elsewhere(cuda_kernel, gpu):
    x, y, out = gpu.random(1024, seed=1), gpu.random(1024, seed=2), gpu.empty(1024)
    gpu_of_another = type("AnotherStream", (), {"stream": 0})()
    launched(cuda_kernel, gpu_of_another, "add", (x, y, out))


"""


def recorded_unchanged_and_paired(pytester: pytest.Pytester, text: str, slower: tuple[str, str]) -> None:
    """Four tests: right results, recorded; three runs of the same code without a red; the slower one alone is red."""
    module = pytester.makepyfile(test_dsl=text)
    pytester.runpytest_subprocess().assert_outcomes(passed=4)
    pytester.runpytest_subprocess(*RECORD).assert_outcomes(passed=4)
    for _ in range(3):
        result = pytester.runpytest_subprocess("--gpuperf")
        result.assert_outcomes(passed=4)
        result.stdout.re_match_lines([r"  decay.* (UNCHANGED)"])
    module.write_text(text.replace(*slower), encoding="utf-8")
    result = pytester.runpytest_subprocess("--gpuperf")
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.re_match_lines([
        r"decay(_kernel)?  SLOWER  on .* \(time\)  x1\.\d+ ", r" .* paired, \d+\+\d+ blocks",
        r" +proven to be more than 1 % slower, in two processes",
    ])  # fmt: skip


def test_kernels_of_cutile_are_right_recorded_and_paired(cuda_device: Any, pytester: pytest.Pytester) -> None:
    if cuda_device.facts.arch != "sm_90":
        pytest.skip("the recorded cubins are for sm_90")
    recorded_unchanged_and_paired(pytester, CUTILE, ("STEPS = 40", "STEPS = 50"))


def test_kernels_of_cute_are_right_recorded_and_paired(cuda_device: Any, pytester: pytest.Pytester, need: Any) -> None:
    need("cutlass")
    recorded_unchanged_and_paired(pytester, CUTE, ("STEPS = 400", "STEPS = 500"))


def test_call_on_another_stream_is_refused(cuda_device: Any, pytester: pytest.Pytester, need: Any) -> None:
    need("cutlass")
    prelude, _, rest = CUTE.partition("def test_add")
    pytester.makepyfile(test_dsl=prelude + ELSEWHERE + "def test_add" + rest.partition("def test_rowsum")[0])
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*It may only enqueue this one kernel on gpu.stream, without waiting*"])
