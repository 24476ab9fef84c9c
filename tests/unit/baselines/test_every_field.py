"""Every field of a record that is written is read again: records in which none is left at what it is by default."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from baseline_samples import (
    H200,
    NVRTC,
    make_host_time,
    make_key,
    make_session,
    make_static,
    make_time,
)

from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.parsing import decode
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Identity, StaticRecord
from pytest_gpuperf.model.timed_round import RecordedRound

SESSION = make_session()
STATIC = msgspec.structs.replace(
    make_static(config="BLOCK=64"), symbol="_Z9transposeILi64EEvv", dynamic_shared_bytes=2048, grid=(16, 2, 1),
    block=(64, 1, 1), cubin="ab" * 32,
)  # fmt: skip
CLOCKS = ((1980, 1980), (1980, 1965), (1950, 1950), None)
ROUNDS = tuple(
    RecordedRound(session=SESSION.id, midmean=50000.0 + number, sm_clock_mhz=clocks)
    for number, clocks in enumerate(CLOCKS)
)
TIME = make_time(
    SESSION,
    identity=Identity(
        code="c0" * 32, launch="grid=(16, 2, 1) block=(64, 1, 1) shared=2048", arguments=("float32[8]", "int32=7"),
        source="50" * 32, toolchain=NVRTC, config="BLOCK=64",
    ),
    rounds=ROUNDS, symbol="_Z9transposeILi64EEvv", grid=(16, 2, 1), block=(64, 1, 1), dynamic_shared_bytes=2048,
    bytes=1024, flops=2048, counters={"dram__bytes.sum": 10.0}, counter_ranges={"dram__bytes.sum": (9.0, 11.0)},
    beside=Beside(memory_bytes=512, accuracy=0.5, host=make_host_time()),
)  # fmt: skip


def is_set(record: Record) -> None:
    """That no field is left at what it is by default: a field that comes later is to be tried too."""
    usual = {field.name: field.default for field in msgspec.structs.fields(record)}
    assert [name for name, default in usual.items() if getattr(record, name) == default] == []


@pytest.mark.parametrize("test", ["test_transpose", "test_transpose[64-f[0]]", "TestA::test_x[a::b]", "test_1[]"])
def test_every_field_of_a_static_record_is_read_again(test: str) -> None:
    is_set(STATIC)
    keys = [make_key(test), make_key(test, "another"), make_key("test_2", "64"), make_key("test_10", "8")]
    others = [STATIC, msgspec.structs.replace(STATIC, kernel="other", symbol=""), make_static(), make_static(40)]
    tests: dict[str, dict[str, StaticRecord]] = {}
    for key, record in zip(keys, others, strict=True):
        tests.setdefault(key.test, {})[key.workload] = record
    file = StaticFile(target="sm_90", toolchains={NVRTC: tests}, schema=SCHEMA_VERSION)
    assert decode(canonical_bytes(file), Path("sm_90.json"), "sm_90") == file


def test_every_field_of_a_time_is_read_again() -> None:
    is_set(TIME)
    is_set(TIME.identity)
    other = msgspec.structs.replace(TIME, kernel="other", symbol="", rounds=ROUNDS[:1])
    plain = make_time(SESSION, rounds=ROUNDS[2:])
    one_clock = msgspec.structs.replace(plain, rounds=(ROUNDS[0], ROUNDS[0]))
    tests = {"test_a": {"64": TIME, "8": other}, "test_b[1]": {"k": plain}, "test_10": {"k": one_clock}}
    file = TimeFile(target=H200, sessions=(SESSION,), tests=tests, schema=SCHEMA_VERSION)
    content = canonical_bytes(file)
    assert decode(content, Path(f"{H200}.json"), H200) == file
    backwards = msgspec.structs.replace(file, tests=dict(reversed(tests.items())))
    assert canonical_bytes(backwards) == content  # whatever the order in which they came
