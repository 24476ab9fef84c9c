"""Kernels of the installed Triton on a real GPU: launched without it they do the same."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.gpu

AS_TRITON = """
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, bias, out, stride, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(x + at * stride, mask=inside) * factor
    if bias is not None:
        values += tl.load(bias)
    tl.store(out + at, values, mask=inside)


def launched_both_ways(cuda_kernel, gpuperf, function, grid, args, out, **constants):
    by_triton = torch.zeros_like(out)
    theirs = [by_triton if one is out else one for one in args]
    compiled = function[(grid,)](*theirs, **constants)
    torch.cuda.synchronize()
    launch = cuda_kernel.from_triton(compiled).launch(grid, (*args, *constants.values()))
    gpuperf(launch, check=lambda: torch.equal(out, by_triton) and bool(out.any()))
    return compiled


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_arguments_that_triton_folds(cuda_kernel, gpu, gpuperf, dtype):
    x = torch.rand(10_000, device="cuda").to(dtype)
    out = torch.zeros_like(x)
    launched_both_ways(cuda_kernel, gpuperf, scale, 40, (x, None, out, 1, 2.5, 10_000), out, BLOCK=256)


def test_warmup(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random(4096, seed=1), gpu.zeros(4096)
    compiled = scale.warmup(torch.float32, None, torch.float32, 1, 2.5, 4096, BLOCK=256, grid=(1,))
    launch = cuda_kernel.from_triton(compiled).launch(16, (x, None, out, 1, 2.5, 4096))
    gpuperf(launch, check=lambda: gpu.assert_equal(out, x * gpu.full(4096, 2.5)))
"""


def test_what_triton_launches_itself_comes_out_the_same(cuda_device: Any, pytester: pytest.Pytester, need: Any) -> None:
    need("triton", "torch")
    pytester.makepyfile(test_as_triton=AS_TRITON)
    pytester.runpytest_subprocess().assert_outcomes(passed=3)
