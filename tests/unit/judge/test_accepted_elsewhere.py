"""Static verdicts where records of other compilers have their say, word by word."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_samples import KEY, static

from pytest_gpuperf.judge.static_verdict import (
    accepted_elsewhere,
    compare_static,
    missing_static,
    with_launch_of,
)
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict

OLD = static(code_hash="old", spill_store_bytes=0)
NEW = msgspec.structs.replace(static(spill_store_bytes=16), source_hash="t")
FOUND = compare_static(KEY, "sm_90", OLD, NEW)
ELSEWHERE = "its source is on record as accepted under nvrtc 12.9.86, and "


def accepted(new: StaticRecord = NEW, old: StaticRecord | None = OLD, **others: StaticRecord) -> Judgement:
    named = {"nvrtc 12.9.86": msgspec.structs.replace(NEW, kernel="theirs"), **others}
    return accepted_elsewhere(FOUND, new, old, "nvrtc 13.0.88", named)


def test_a_loss_that_another_compilers_newer_record_has_is_accepted_there() -> None:
    assert FOUND.verdict is Verdict.WORSE
    assert accepted() == Judgement(
        key=KEY, target="sm_90", kind="static", verdict=Verdict.ACCEPTED_ELSEWHERE, changes=FOUND.changes,
        reason=f"{ELSEWHERE}the record of nvrtc 13.0.88 is older: bring it up to date with pytest --update-baselines",
    )  # fmt: skip
    assert accepted(old=None).reason == (
        f"{ELSEWHERE}there is no record of nvrtc 13.0.88 yet: bring it up to date with pytest --update-baselines"
    )


def test_a_kernel_that_was_not_launched_is_accepted_whatever_the_launch_on_record() -> None:
    unlaunched = msgspec.structs.replace(NEW, block=None)
    assert accepted(unlaunched).verdict is Verdict.ACCEPTED_ELSEWHERE


@pytest.mark.parametrize(
    "changes", [{"block": (64, 1, 1)}, {"dynamic_shared_bytes": 8}, {"source_hash": ""}, {"source_hash": "u"}]
)
def test_another_launch_or_source_is_not(changes: dict[str, Any]) -> None:
    assert accepted(msgspec.structs.replace(NEW, **changes)) == FOUND


def test_nor_is_what_is_no_difference_or_on_record_with_this_source() -> None:
    assert accepted(old=msgspec.structs.replace(OLD, source_hash="t")) == FOUND
    same = msgspec.structs.replace(FOUND, verdict=Verdict.SAME)
    assert accepted_elsewhere(same, NEW, OLD, "nvrtc 13.0.88", {"nvrtc 12.9.86": NEW}) == same


def test_code_of_an_unknown_compiler_can_only_be_compared_with_equal_code() -> None:
    assert missing_static(KEY, "sm_90", "", ["nvrtc 12.9.86"]).reason == (
        "the machine code does not say which compiler made it, and only equal code can be compared then: build it with "
        "CUDA 13, which names its assembler, or accept it with pytest --update-baselines"
    )


def test_a_kernel_that_was_not_launched_has_the_launch_of_its_record() -> None:
    old = msgspec.structs.replace(OLD, grid=(8, 1, 1), dynamic_shared_bytes=16)
    found = with_launch_of(msgspec.structs.replace(NEW, block=None, occupancy=None), old)
    assert (found.block, found.grid, found.dynamic_shared_bytes) == (old.block, (8, 1, 1), 16)
    assert found.occupancy == old.occupancy
