"""What is known of one side of a comparison: its launch, with and without a GPU."""

from __future__ import annotations

from pytest_gpuperf.explain.comparison import side_of
from pytest_gpuperf.model.evidence import StaticProfile, StaticRecord
from pytest_gpuperf.model.time_record import Identity, TimeRecord

PROFILE = StaticProfile(
    registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0, barriers=0,
    code_bytes=128, code_hash="a" * 64, instructions=8, opcodes={},
)  # fmt: skip
STATIC = StaticRecord(kernel="k", source_hash="b" * 64, profile=PROFILE, grid=(7, 1, 1), block=(32, 1, 1))
TIMED = TimeRecord(
    identity=Identity(code="a", launch=""), timer="graph", cache="cold", rounds=(), grid=(9, 1, 1), block=(32, 1, 1)
)


def test_without_a_gpu_the_grid_is_that_of_the_static_record() -> None:
    assert side_of("sm_90", STATIC, None, None, None).grid == (7, 1, 1)
    assert side_of("sm_90", STATIC, TIMED, None, None).grid == (9, 1, 1)
    assert side_of("sm_90", None, None, None, None).grid is None
