"""Theoretical occupancy: textbook cases, the limits of each generation, and laws that hold for any launch."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_samples import profile_of

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.compile.machine_code.occupancy import limits_of, occupancy
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.evidence import Occupancy

archs = st.sampled_from(sorted(ARCHITECTURES))
registers = st.integers(0, 255)
shared = st.integers(0, 230_000)
threads = st.integers(1, 1024)


def occupancy_of(registers: int, shared_bytes: int, threads: int, arch: str) -> Occupancy:
    return occupancy(profile_of(registers=registers), arch, threads, shared_bytes)


@pytest.mark.parametrize(("registers", "shared_bytes", "block", "arch", "blocks", "fraction", "limiter"), [
    (63, 0, 1024, "sm_90", 1, 0.5, "registers"),
    (32, 0, 1024, "sm_90", 2, 1.0, "warps"),
    (31, 0, 32, "sm_90", 32, 0.5, "blocks"),
    (32, 0, 32, "sm_75", 16, 0.5, "blocks"),
    (32, 48 * 1024, 256, "sm_80", 3, 0.375, "shared memory"),
    (32, 48 * 1024, 256, "sm_120", 2, 2 * 8 / 48, "shared memory"),
    (32, 227 * 1024, 1024, "sm_90", 1, 0.5, "shared memory"),
    (32, 64 * 1024, 1024, "sm_75", 1, 1.0, "warps"),
])  # fmt: skip
def test_textbook_cases(
    registers: int, shared_bytes: int, block: int, arch: str, blocks: int, fraction: float, limiter: str
) -> None:
    found = occupancy_of(registers, shared_bytes, block, arch)
    assert (found.blocks_per_sm, found.fraction, found.limiter) == (blocks, pytest.approx(fraction), limiter)


def test_a_launch_that_cannot_run_has_no_occupancy() -> None:
    for registers, shared_bytes, block, limit in (
        (65, 0, 1024, "registers"), (32, 227 * 1024 + 1, 128, "shared memory"), (32, 0, 1025, "warps"),
        (256, 0, 32, "registers"),
    ):  # fmt: skip
        found = occupancy_of(registers, shared_bytes, block, "sm_90")
        assert (found.blocks_per_sm, found.warps_per_sm, found.fraction, found.limiter) == (0, 0, 0.0, limit)


def test_an_unknown_architecture_lists_those_known() -> None:
    for arch in ("sm_70", "90", "sm_90b", "compute_90", "sm_80a", "sm_90f", ""):
        with pytest.raises(UnknownArchitecture, match=r"known: sm_75, sm_80, .*sm_121"):
            occupancy_of(32, 0, 128, arch)
    for arch, hint in (("90a", "did you mean sm_90a?"), ("8.0;9.0", "sm_80, sm_90?"), ("sm_70", "CUDA 13 dropped it")):
        with pytest.raises(UnknownArchitecture, match=re.escape(hint)):
            limits_of(arch)
    assert limits_of("sm_90a") == limits_of("sm_90")
    assert limits_of("sm_120f") == limits_of("sm_120")


@given(archs, registers, shared, threads)
def test_no_launch_exceeds_what_an_sm_holds(arch: str, registers: int, shared: int, threads: int) -> None:
    found = occupancy_of(registers, shared, threads, arch)
    limits = limits_of(arch)
    assert 0 <= found.fraction <= 1
    assert found.blocks_per_sm <= limits.blocks_per_sm
    assert found.blocks_per_sm * threads <= limits.threads_per_sm
    assert found.blocks_per_sm * shared <= limits.shared_bytes_per_sm
    assert found.blocks_per_sm * threads * registers <= 65536
    assert (found.fraction == 0) == (found.blocks_per_sm == 0)
    assert occupancy_of(registers + 8, shared, threads, arch).blocks_per_sm <= found.blocks_per_sm
    assert occupancy_of(registers, shared + 1024, threads, arch).blocks_per_sm <= found.blocks_per_sm
