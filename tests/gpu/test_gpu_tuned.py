"""Autotuned Triton kernels on a real GPU: recorded, paired, and changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from evidence_tree import read_evidence

pytestmark = pytest.mark.gpu

AUTOTUNED = """
import os

import torch
import triton
import triton.language as tl

N, SIDE = 1 << 24, 1024


def choices(*configs):
    '''All of them, or the one that the environment says.'''
    only = os.environ.get("ONLY_CONFIG")
    return [triton.Config(*one[:1], **one[1]) for one in (configs if only is None else configs[int(only):][:1])]


@triton.autotune(choices(({"BLOCK": 1024}, {"num_warps": 4}), ({"BLOCK": 32}, {"num_warps": 1})), key=["n"])
@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@triton.autotune(choices(({}, {"num_warps": 4}), ({}, {"num_warps": 32})), key=["columns"])
@triton.jit
def softmax(out, x, columns, WIDTH: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, WIDTH)
    inside = tl.arange(0, WIDTH) < columns
    values = tl.load(x + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.autotune(
    choices(({"M": 64, "K": 32}, {"num_warps": 4, "num_stages": 3}), ({"M": 16, "K": 16}, {"num_warps": 1})), key=["n"]
)
@triton.jit
def matmul(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * M + tl.arange(0, M)
    total = tl.zeros((M, M), dtype=tl.float32)
    for start in range(0, n, K):
        k = start + tl.arange(0, K)
        left = tl.load(a + row[:, None] * n + k[None, :])
        total += tl.dot(left, tl.load(b + k[:, None] * n + column[None, :]))
    tl.store(c + row[:, None] * n + column[None, :], total)


def test_scale(cuda_kernel, gpu, gpuperf):
    x = torch.as_tensor(gpu.random(N, seed=1), device="cuda")
    out = torch.empty_like(x)
    compiled = scale[lambda chosen: (triton.cdiv(N, chosen["BLOCK"]),)](x, out, 2.5, N)
    config = scale.best_config
    block = config.kwargs["BLOCK"]
    launch = cuda_kernel.from_triton(compiled, config=config).launch(triton.cdiv(N, block), (x, out, 2.5, N, block))
    gpuperf(launch, check=lambda: torch.equal(out, x * 2.5))


def test_softmax(cuda_kernel, gpu, gpuperf):
    x = torch.as_tensor(gpu.random((8192, 1000), seed=1), device="cuda")
    out = torch.empty_like(x)
    compiled = softmax[(8192,)](out, x, 1000, WIDTH=1024)
    launch = cuda_kernel.from_triton(compiled, config=softmax.best_config).launch(8192, (out, x, 1000, 1024))
    gpuperf(launch, check=lambda: torch.allclose(out, torch.softmax(x, -1), rtol=1e-4))


def test_matmul(cuda_kernel, gpu, gpuperf):
    a = torch.as_tensor(gpu.random((SIDE, SIDE), seed=1), device="cuda").half()
    b = torch.as_tensor(gpu.random((SIDE, SIDE), seed=2), device="cuda").half()
    c = torch.empty(SIDE, SIDE, device="cuda")
    compiled = matmul[lambda chosen: (SIDE // chosen["M"], SIDE // chosen["M"])](a, b, c, SIDE)
    config = matmul.best_config
    m, k = config.kwargs["M"], config.kwargs["K"]
    launch = cuda_kernel.from_triton(compiled, config=config).launch((SIDE // m, SIDE // m), (a, b, c, SIDE, m, k))
    gpuperf(launch, check=lambda: torch.allclose(c, a.float() @ b.float(), rtol=1e-2))
"""

RECORD = ("--update-baselines", "--gpuperf-disturbed")
RED = r"  (SLOWER|WORSE)  on "


def static_uses(folder: Path, arch: str, module: str) -> dict[str, dict[str, Any]]:
    """What is on record of each kernel that a workload launches, or that stands for itself, by its name."""
    (tests,) = read_evidence(folder / "baselines" / arch / f"{module}.jsonl")["toolchains"].values()
    return {f"{test.partition('[')[0]}.{name}": use for test, named in tests.items() for name, use in named.items()}


def without_red(pytester: pytest.Pytester, *arguments: str) -> str:
    """Output of a gated run, whose tests pass."""
    result = pytester.runpytest_subprocess("--gpuperf", *arguments)
    result.assert_outcomes(passed=3)
    assert not re.search(RED, result.stdout.str())
    return result.stdout.str()


@pytest.fixture
def autotuned(
    cuda_device: Any, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, need: Any
) -> pytest.Pytester:
    """Three autotuned kernels, recorded with the first configuration of each."""
    need("triton", "torch")
    pytester.makepyfile(test_autotuned=AUTOTUNED)
    monkeypatch.setenv("ONLY_CONFIG", "0")
    pytester.runpytest_subprocess(*RECORD).assert_outcomes(passed=3)
    return pytester


def test_what_triton_chose_is_on_record_and_paired_with_itself(cuda_device: Any, autotuned: pytest.Pytester) -> None:
    uses = static_uses(autotuned.path, cuda_device.facts.arch, "test_autotuned")
    assert {name: use["config"] for name, use in uses.items()} == {
        "test_scale.scale": "BLOCK=1024, num_warps=4, num_stages=3",
        "test_softmax.softmax": "num_warps=4, num_stages=3",
        "test_matmul.matmul": "K=32, M=64, num_warps=4, num_stages=3",
    }
    for _ in range(3):
        text = without_red(autotuned, "--gpuperf-time=all")
        assert "NOT-COMPARABLE" not in text


def test_slower_choice_is_red(cuda_device: Any, autotuned: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONLY_CONFIG", "1")
    result = autotuned.runpytest_subprocess("--gpuperf", "-k", "scale or matmul")
    result.assert_outcomes(failed=2, deselected=1)
    result.stdout.re_match_lines([
        r"scale  SLOWER  on .* \(time\) ", r" .* paired, \d+",
        r" +proven .*the configuration was BLOCK=1024, num_warps=4, num_stages=3 and is BLOCK=32, num_warps=1,",
    ])  # fmt: skip
    assert f"NOT-COMPARABLE  on {cuda_device.facts.arch} (static)" in result.stdout.str()

    autotuned.runpytest_subprocess(*RECORD).assert_outcomes(passed=3)
    uses = static_uses(autotuned.path, cuda_device.facts.arch, "test_autotuned")
    assert uses["test_scale.scale"]["config"] == "BLOCK=32, num_warps=1, num_stages=3"
    without_red(autotuned)
