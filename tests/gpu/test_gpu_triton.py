"""Kernels of the installed Triton on a real GPU: launched without it they do the same, and changed ones are paired."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from evidence_tree import read_evidence

pytestmark = pytest.mark.gpu

GATED = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STEPS = 200


@triton.jit
def decay(x, out, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    for _ in tl.static_range(STEPS):
        value = value * 0.999 + 0.001
    tl.store(out + at, value, mask=inside)


def test_decay(cuda_kernel, gpu, gpuperf):
    n = 1 << 22
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "STEPS": "constexpr", "BLOCK": "constexpr"}
    source = ASTSource(fn=decay, signature=signature, constexprs={"STEPS": STEPS, "BLOCK": 1024},
                       attrs={(place,): [["tt.divisibility", 16]] for place in range(3)})
    major, minor = gpu.compute_capability
    compiled = triton.compile(source, target=GPUTarget("cuda", 10 * major + minor, 32))
    x = gpu.random(n, seed=1)
    out = gpu.empty_like(x)

    def check():
        gpu.assert_allclose(out, 1 + (gpu.to_host(x).astype("float64") - 1) * 0.999**STEPS, rtol=1e-4)

    launch = cuda_kernel.from_triton(compiled).launch(triton.cdiv(n, 1024), (x, out, n, STEPS, 1024))
    gpuperf(launch, check=check)
"""

AS_TRITON = """
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, axis=0), mask=inside)


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


def test_softmax(cuda_kernel, gpu, gpuperf):
    x = torch.rand(512, 1000, device="cuda")
    out = torch.zeros_like(x)
    launched_both_ways(cuda_kernel, gpuperf, softmax, 512, (out, x, x.stride(0), 1000), out, BLOCK=1024)


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


def need(*modules: str) -> None:
    for name in modules:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}")


def test_a_triton_kernel_is_recorded_unchanged_and_paired_when_it_changes(
    cuda_device: Any, pytester: pytest.Pytester
) -> None:
    need("triton")
    module = pytester.makepyfile(test_decay=GATED)
    update = ("--update-baselines", "--gpuperf-disturbed")
    pytester.runpytest_subprocess(*update).assert_outcomes(passed=1)
    (toolchain,) = read_evidence(pytester.path / f"baselines/{cuda_device.facts.arch}/test_decay.jsonl")["toolchains"]
    assert toolchain.startswith("triton ")

    result = pytester.runpytest_subprocess("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  decay .* (UNCHANGED)"])

    module.write_text(GATED.replace("STEPS = 200", "STEPS = 250"), encoding="utf-8")
    result = pytester.runpytest_subprocess("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"decay  SLOWER  on .* \(time\)  x1\.\d+ .* paired, \d+\+\d+ blocks",
            r" +proven to be more than 0.5 % slower, in two processes",
        ]
    )


def test_what_triton_launches_itself_comes_out_the_same(cuda_device: Any, pytester: pytest.Pytester) -> None:
    need("triton", "torch")
    pytester.makepyfile(test_as_triton=AS_TRITON)
    pytester.runpytest_subprocess().assert_outcomes(passed=4)
