"""Peaks: their kernels are what they are counted as.  What is measured is tested on a GPU."""

from __future__ import annotations

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device import peaks


def test_the_kernels_are_what_they_are_counted_as() -> None:
    compiled = {
        name: compile_kernel(KernelSource(text=peaks.SOURCE, name=name, options=peaks.OPTIONS), "sm_90").profile
        for name in ("gpuperf_copy", "gpuperf_fma")
    }
    copy, fma = compiled["gpuperf_copy"], compiled["gpuperf_fma"]
    assert copy.opcodes["global_load"] == copy.opcodes["global_store"] == peaks.COPY_VECTORS
    assert fma.opcodes["fp32"] >= 16 * peaks.FMA_CHAINS
    assert fma.opcodes["fp32"] > 0.75 * fma.instructions
    assert max(copy.registers, fma.registers) <= 32  # full occupancy
    assert copy.spill_store_bytes == fma.spill_store_bytes == 0
