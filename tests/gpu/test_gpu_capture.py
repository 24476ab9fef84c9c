"""What callables of PyTorch, Triton and CuPy launch on a real GPU: listed, recorded, and a planted loss named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from git_samples import commit

pytestmark = pytest.mark.gpu

KERNELS = """
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (1024, 4), (4096, 8))], key=["n"]
)
@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3, mask=at < n)


@triton.jit
def first(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def second(x, out, n, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    for _ in range(TIMES):
        value = tl.sin(value) + tl.load(x + (at * 7) % n, mask=at < n)
    tl.store(out + at, value, mask=at < n)
"""
SUITE = """
import cupy
import torch
import triton
from torch.nn import functional
from kernels import first, scaled, second

N, TIMES = 1 << 22, 2


def listed(result):
    for one in result.kernels:
        print("KERNEL", one.name, one.grid, one.block, one.registers, one.cubin[:8], one.time_ns)
    assert result.kernels and all(one.cubin for one in result.kernels)


def test_softmax(gpuperf):
    x = torch.randn(2048, 1024, device="cuda")
    listed(gpuperf(torch.softmax, x, -1, name="softmax"))


def test_layer_norm(gpuperf):
    x = torch.randn(2048, 1024, device="cuda", requires_grad=True)
    weight, bias = (torch.ones(1024, device="cuda", requires_grad=True) for _ in range(2))
    listed(gpuperf(lambda: functional.layer_norm(x, (1024,), weight, bias).sum().backward(), name="layer norm"))


def test_gelu(gpuperf):
    x, compiled = torch.randn(N, device="cuda"), torch.compile(lambda x: functional.gelu(x) * 2)
    listed(gpuperf(lambda: compiled(x), name="gelu"))


def test_autotuned(gpuperf):
    x = torch.randn(N, device="cuda")
    out = torch.empty_like(x)
    listed(gpuperf(lambda: scaled[lambda chosen: (triton.cdiv(N, chosen["BLOCK"]),)](x, out, N), name="scaled"))


def test_expression(gpu, gpuperf):
    x = gpu.random(N, seed=1)
    listed(gpuperf(lambda: cupy.exp(x * 2 + 1).sum(), name="expression"))


def test_three(gpuperf):
    x = torch.randn(N, device="cuda")
    y, z = torch.empty_like(x), torch.empty_like(x)

    def three():
        first[(N // 1024,)](x, y, N, BLOCK=1024)
        second[(N // 1024,)](y, z, N, BLOCK=1024, TIMES=TIMES)
        torch.softmax(z.view(-1, 1024), -1)

    listed(gpuperf(three))
"""
RECORD = ("--update-baselines", "--gpuperf-disturbed")


@pytest.fixture
def recorded(
    cuda_device: Any, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any, need: Any
) -> pytest.Pytester:
    """Six callables with their records, in a repository; what compilers cache lies outside of it."""
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp(name)))
    need("torch", "triton", "cupti")
    pytester.makepyfile(kernels=KERNELS, test_captured=SUITE)
    Path(pytester.path, ".gitignore").write_text("__pycache__\n.gpuperf\n")
    commit(pytester.path, "Callables")
    result = pytester.runpytest_subprocess(*RECORD, "-s")
    result.assert_outcomes(passed=6)
    commit(pytester.path, "Baselines")
    return pytester


def test_every_kernel_is_recorded_and_unchanged(cuda_device: Any, recorded: pytest.Pytester) -> None:
    file = recorded.path / "baselines" / cuda_device.facts.arch / "test_captured.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()[1:] if line]
    assert {one["test"] for one in lines} == {
        "test_softmax", "test_layer_norm", "test_gelu", "test_autotuned", "test_expression", "test_three"
    }  # fmt: skip
    assert {one["workload"] for one in lines} >= {
        "softmax: softmax_warp_forward", "scaled: scaled", "three: first", "three: second"
    }  # fmt: skip
    assert all(one["record"]["captured"] for one in lines)
    result = recorded.runpytest_subprocess("--gpuperf", "-k", "not autotuned")
    result.assert_outcomes(passed=5, deselected=1)
    assert not re.search(r"(WORSE|SLOWER|NEW)  on", result.stdout.str())


def test_planted_loss_is_named_as_that_kernel(recorded: pytest.Pytester) -> None:
    file = recorded.path / "test_captured.py"
    file.write_text(file.read_text().replace("TIMES = 1 << 22, 2", "TIMES = 1 << 22, 6"))
    result = recorded.runpytest_subprocess("--gpuperf", "-k", "three")
    result.assert_outcomes(failed=1, deselected=5)
    result.stdout.re_match_lines([r"three  SLOWER  on ", r" +2 of 3 kernels unchanged; second x1\.\d+"])
