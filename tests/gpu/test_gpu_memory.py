"""A test whose arrays take 60 % of a real GPU's memory: recorded, gated, and confirmed slower by a second process."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.gpu

SUITE = """
def test_large(cuda_kernel, gpu, gpuperf):
    elements = int(0.6 * gpu.memory_bytes) // 2 // 16 * 4
    kernel = cuda_kernel("copy.cu", "copy")
    source = gpu.full(elements, 2.0)
    target = gpu.empty(elements)
    threads = elements // 4 // SHARE
    launch = kernel.launch(grid=-(-threads // 256), block=256, args=(source, target, threads))
    gpuperf(launch, check=lambda: bool((target[: 4 * threads] == 2.0).all()))
"""
COPY = """
extern "C" __global__ void copy(const float4* in, float4* out, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 x = in[i];
    REPEAT
    out[i] = x;
}
"""
SHARE = 64
"""Part of the arrays that is copied: launches of half a millisecond, so that the test is soon over."""
PLANTED = "if (i < n / 3 * 2) x.w = fmaxf(x.w, in[n + i].w);"
"""Reads two thirds of the data besides: a third more bytes are moved."""
RECORD = ("--update-baselines",)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_large_arrays_are_recorded_gated_and_confirmed(cuda_device: Any, pytester: pytest.Pytester) -> None:
    cuda_device.release_unused()
    pytester.makepyfile(test_large=SUITE.replace("SHARE", str(SHARE)))
    source = pytester.path / "copy.cu"
    source.write_text(COPY.replace("REPEAT", ""), encoding="utf-8")
    recorded = run(pytester, *RECORD)
    assert recorded.ret == 0, recorded.stdout.str()
    run(pytester, "--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    source.write_text(COPY.replace("REPEAT", PLANTED), encoding="utf-8")
    slower = run(pytester, "--gpuperf")
    assert slower.ret == 1
    slower.stdout.fnmatch_lines(["*SLOWER*", "*its arrays stayed at their addresses: *"])
