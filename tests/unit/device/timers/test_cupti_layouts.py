"""Offsets of record fields from a binding's data types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated_libcupti import KERNEL, MEMSET, structure
from simulated_stream import SimulatedCupti, SimulatedStream

from pytest_gpuperf.device.timers.cupti_layouts import BuffersUnreadable, Layouts


@pytest.fixture
def binding() -> Any:
    return SimulatedCupti(SimulatedStream())


def test_fields_are_read_from_where_the_data_types_have_them(binding: Any) -> None:
    layouts = Layouts.of(binding)
    record = np.zeros(2, KERNEL)
    record[1] = (10, 2**60, 2**61, 7, 2**32 - 1, 2**47)
    assert layouts.kernel.unpack_from(record.tobytes(), KERNEL.itemsize) == (2**60, 2**61, 2**32 - 1, 2**47)
    assert layouts.memset.unpack_from(bytes(MEMSET.itemsize)) == (0, 0, 0)


@pytest.mark.parametrize("version", [9, 11])
def test_the_newest_version_of_a_record_is_taken(binding: Any, version: int) -> None:
    moved = structure(224, start=(24, "u8"), end=(32, "u8"), correlation_id=(100, "u4"), name=(112, "i8"))
    setattr(binding, f"activity_kernel{version}_dtype", moved)
    assert Layouts.of(binding).kernel.size == (120 if version == 11 else 112)


def test_a_record_of_another_name_is_no_version(binding: Any) -> None:
    binding.activity_memcpy_pto_p4_dtype = binding.activity_memcpy99_x_dtype = structure(8, kind=(0, "i4"))
    assert Layouts.of(binding).memcpy.size == 48


def test_a_missing_data_type_is_refused(binding: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(SimulatedCupti, "activity_memset4_dtype")
    with pytest.raises(BuffersUnreadable, match="no data type for the memset record"):
        Layouts.of(binding)


@pytest.mark.parametrize(
    "odd",
    [
        structure(216, start=(16, "u8"), end=(24, "u8"), name=(104, "i8")),
        structure(216, start=(16, "u8"), end=(24, "u8"), correlation_id=(92, "u2"), name=(104, "i8")),
        structure(216, start=(16, "u8"), end=(24, "u8"), correlation_id=(8, "u4"), name=(104, "i8")),
    ],
    ids=["missing", "narrow", "out of order"],
)
def test_an_odd_data_type_is_refused(binding: Any, odd: Any) -> None:
    binding.activity_kernel10_dtype = odd
    with pytest.raises(BuffersUnreadable, match="kernel record has no 'correlation_id' where it should be"):
        Layouts.of(binding)
