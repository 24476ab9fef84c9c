"""PTX of another compiler becomes machine code with the assembler's report, or is refused with its log."""

from __future__ import annotations

import sys

import pytest

from pytest_gpuperf.compile.adapters import numba
from pytest_gpuperf.compile.compile_errors import CompileError, ToolchainMissing
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import StaticProfile

BUSY = """
extern "C" __global__ void busy(float* x, int n)
{
    __shared__ float tile[64];
    float values[40];
    for (int i = 0; i < 40; ++i) values[i] = x[i * n + threadIdx.x];
    tile[threadIdx.x] = values[0];
    __syncthreads();
    for (int round = 0; round < n; ++round)
        for (int i = 0; i < 40; ++i) values[i] = values[i] * values[(i + 1) % 40] + tile[i];
    for (int i = 0; i < 40; ++i) x[i * n + threadIdx.x] = values[i];
}
"""


def profile(arch: str, *options: str) -> StaticProfile:
    ptx = compile_cubin(KernelSource(BUSY, "busy"), arch).ptx.encode()
    made = numba.link(ptx, "PTX", arch, "busy", options)
    return ready_made(made.cubin, "busy", place="busy", log=made.log).profile


def test_ptx_is_assembled_with_its_spills_and_shared_memory() -> None:
    free, limited = profile("sm_120"), profile("sm_120", "-maxrregcount=32")
    assert (free.shared_bytes, free.barriers, free.spill_bytes) == (256, 1, 0)
    assert free.registers > 40
    assert limited.registers <= 32
    assert limited.shared_bytes == 256
    assert limited.spill_store_bytes


def test_code_that_is_refused_comes_with_the_log_and_a_missing_library_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CompileError, match=r"(?s)busy: nvJitLink refuses it for sm_90: .*ptxas.*error") as caught:
        numba.link(b".version 9.0\n.target sm_90\nnonsense", "PTX", "sm_90", "busy")
    assert caught.value.log
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    with pytest.raises(ToolchainMissing, match=r"cuda-bindings and nvJitLink cannot .* pip install nvidia-nvjitlink"):
        numba.link(b"", "PTX", "sm_90", "busy")
