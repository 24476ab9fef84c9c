"""Kernels of known work: the count is in the machine code, and nothing but the count differs."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_gpuperf.selftest.kernels import (
    COPY,
    KERNELS,
    LOOP,
    Family,
    Probe,
    UnknownSlowdown,
    require_known_difference,
)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("family", [LOOP, COPY], ids=["loop", "copy"])
def test_slower_version_differs_in_its_count_alone(arch: str, family: Family) -> None:
    baseline = Probe(family, 4096).compiled(arch)
    for added in (0, 1, 93, 1000, 1 << 20):
        candidate = Probe(family, 4096 + added, moved=True).compiled(arch)
        require_known_difference(baseline, candidate, added)
        with pytest.raises(UnknownSlowdown, match=rf"gpuperf_{family.name}_{4096 + added} .* is {added + 1} higher"):
            require_known_difference(baseline, candidate, added + 1)


@pytest.mark.parametrize("probe", KERNELS.values(), ids=KERNELS)
def test_kernel_is_the_same_code_behind_another_function(probe: Probe) -> None:
    alone, moved = (dataclasses.replace(probe, moved=moved).compiled("sm_90") for moved in (False, True))
    require_known_difference(alone, moved, 0)
    assert alone.profile.code_hash == moved.profile.code_hash
    assert alone.cubin != moved.cubin


def test_other_code_is_no_known_difference() -> None:
    """An unrolled loop has the same count in its comparison, and another body."""
    unrolled = dataclasses.replace(LOOP, text=LOOP.text.replace("unroll 1", "unroll 4"))
    baseline = Probe(LOOP, 1000).compiled("sm_90")
    for family in (unrolled, COPY):
        with pytest.raises(UnknownSlowdown, match="report this with the output of gpuperf doctor"):
            require_known_difference(baseline, Probe(family, 1004).compiled("sm_90"), 4)
