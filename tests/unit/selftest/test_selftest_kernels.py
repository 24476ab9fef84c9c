"""Kernels of known work: the count is in the machine code, and nothing but the count differs."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_gpuperf.compile.machine_code.cubin import read_cubin, text_of
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.selftest.run import COPY, KERNELS, LOOP, Family


def words(binary: KernelBinary) -> np.ndarray:
    return np.frombuffer(text_of(read_cubin(binary.cubin).elf, binary.symbol).data, "<u4").astype(np.int64)


@pytest.mark.parametrize(("family", "arch"), [(LOOP, "sm_80"), (COPY, "sm_120")], ids=["loop", "copy"])
def test_slower_version_differs_in_its_count_alone(arch: str, family: Family) -> None:
    baseline = words(family.compiled(4096, arch))
    for added in (1, 1 << 20):
        slower = words(family.compiled(4096 + added, arch, moved=True))
        assert set(slower[slower != baseline] - baseline[slower != baseline]) == {added}


@pytest.mark.parametrize("kernel", ["loop", "copy"])
def test_kernel_is_the_same_code_behind_another_function(kernel: str) -> None:
    family, count = KERNELS[kernel]
    alone, moved = (family.compiled(count, "sm_90", moved=moved) for moved in (False, True))
    assert (words(alone) == words(moved)).all()
    assert alone.profile.code_hash == moved.profile.code_hash
    assert alone.cubin != moved.cubin
